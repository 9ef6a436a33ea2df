package wire

// A Text is a string that may be null. The zero value is null. Texts can be
// compared with ==.
type Text struct {
	Value string // "" where null
	Valid bool   // false: null
}

// NewText is the non-null text s.
func NewText(s string) Text { return Text{s, true} }

// TextOrNull is the text s, or null where s is empty.
func TextOrNull(s string) Text { return Text{s, s != ""} }

// String is the value, "" for null.
func (t Text) String() string { return t.Value }

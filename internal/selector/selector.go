package selector

// A Selector is a parsed selector. It is immutable.
type Selector struct {
	text string
}

// Parse parses a selector. An error wraps message.ErrInvalid and names the
// position, what was found there and what was expected. An empty text, or one of
// white space only, is the selector that every message matches.
func Parse(text string) (*Selector, error) { return &Selector{text: text}, nil }

// Matches reports whether a message whose fields l gives is selected.
func (s *Selector) Matches(l Lookup) bool { return true }

// String returns the text that was parsed.
func (s *Selector) String() string { return s.text }

// Identifiers returns the names that the selector looks up, each once, in the
// order they first appear.
func (s *Selector) Identifiers() []string { return nil }

package wire

// A Throwable is a Java exception (OpenWire 4.9).
type Throwable struct {
	Class   string // name of the Java class
	Message Text   // never send a null message
	Stack   []StackElement
	Cause   *Throwable
}

// A StackElement is one line of a stack trace.
type StackElement struct {
	Class  string
	Method string
	File   Text
	Line   int32 // -2: native code; other negative values: not known
}

// NewThrowable is a throwable without stack and cause.
func NewThrowable(class, text string) *Throwable {
	return &Throwable{Class: class, Message: NewText(text)}
}

// String is the throwable as Java prints it, "CLASS: MESSAGE".
func (t *Throwable) String() string {
	if !t.Message.Valid {
		return t.Class
	}
	return t.Class + ": " + t.Message.Value
}

// throwable reads a throwable with its causes, which are not recursive here.
func (r *reader) throwable() *Throwable {
	var first *Throwable
	at := &first
	for n := 0; r.flag(); n++ {
		if n == maxCauses {
			r.fail("more than %d causes", maxCauses)
			return nil
		}
		t := &Throwable{Class: r.str(), Message: r.text()}
		*at = t
		if !r.stackTrace {
			break
		}
		t.Stack = r.stack()
		at = &t.Cause
	}
	return first
}

func (r *reader) stack() []StackElement {
	n, left := int(r.int16()), len(r.b)-r.p
	if n < 0 || n > left/4 { // an element has 4 bytes at least
		r.fail("stack of %d elements", n)
		return nil
	}
	if n == 0 {
		return nil
	}
	stack := make([]StackElement, n)
	for i := range stack {
		stack[i] = StackElement{r.str(), r.str(), r.text(), r.int32()}
	}
	return stack
}

func (w *writer) throwable(t *Throwable) {
	for ; t != nil; t = t.Cause {
		w.flag(true)
		w.str(t.Class)
		w.text(t.Message)
		if !w.stackTrace {
			return
		}
		w.int16(int16(min(len(t.Stack), maxStack)))
		for _, e := range t.Stack[:min(len(t.Stack), maxStack)] {
			w.str(e.Class)
			w.str(e.Method)
			w.text(e.File)
			w.int32(e.Line)
		}
	}
	w.flag(false)
}

// maxStack is how much of a stack trace can be written: the count is an int16.
const maxStack = 1<<15 - 1

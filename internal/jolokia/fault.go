package jolokia

import (
	"context"
	"errors"
	"fmt"

	"github.com/nixiemq/nixie/internal/message"
)

// A fault is an error as a reply tells it.
type fault struct {
	status int
	class  string // of the Java exception
	text   string
}

func (f *fault) Error() string { return f.class + " : " + f.text }

// Classes of the exceptions that replies name.
const (
	classArgument  = "java.lang.IllegalArgumentException"
	classInstance  = "javax.management.InstanceNotFoundException"
	classAttribute = "javax.management.AttributeNotFoundException"
	classSecurity  = "java.lang.SecurityException"
	classException = "java.lang.Exception"
)

func badRequest(format string, args ...any) error {
	return &fault{400, classArgument, fmt.Sprintf(format, args...)}
}

// faults is what becomes of an error of the broker's: the first whose kind it is.
var faults = []struct {
	kind  error
	fault fault
}{
	{message.ErrInvalid, fault{status: 400, class: classArgument}},
	{message.ErrNotFound, fault{status: 404, class: classException}},
	{message.ErrDenied, fault{status: 403, class: classSecurity}},
	{message.ErrExists, fault{status: 409, class: classException}},
	{message.ErrState, fault{status: 409, class: "java.lang.IllegalStateException"}},
	{message.ErrOverLimit, fault{status: 413, class: classException}},
	{message.ErrUnavailable, fault{status: 503, class: classException}},
	{message.ErrCorrupt, fault{status: 500, class: classException}},
	{context.Canceled, fault{status: 503, class: classException}},
	{context.DeadlineExceeded, fault{status: 503, class: classException}},
}

// faultOf makes a fault of any error.
func faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	for i := range faults {
		if errors.Is(err, faults[i].kind) {
			told := faults[i].fault
			told.text = err.Error()
			return &told
		}
	}
	return &fault{500, classException, err.Error()}
}

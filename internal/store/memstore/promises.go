package memstore

import (
	"fmt"

	"github.com/nixiemq/nixie/internal/store"
)

// promises remembers how each key was written, to notice when a caller breaks
// what the "once" operations promise. Only the goroutine that applies batches
// has it.
type promises struct {
	tell    func(text string)
	written map[promised]store.OpKind // OpPut or OpPutOnce; kept when the key is deleted with OpDeleteOnce or a range
}

type promised struct {
	shard uint16
	key   string
}

func newPromises(tell func(string)) *promises {
	return &promises{tell: tell, written: map[promised]store.OpKind{}}
}

// check tells of op if it breaks a promise. exists says whether its key is there
// before op.
func (p *promises) check(number uint16, op store.Op, exists bool) {
	k := promised{number, string(op.Key)}
	kind, known := p.written[k]
	switch op.Kind {
	case store.OpPut:
		if known && kind == store.OpPutOnce {
			p.say("Put of a key that was written with PutOnce", k)
		}
		p.written[k] = op.Kind
	case store.OpPutOnce:
		if known || exists {
			p.say("PutOnce of a key that was written before", k)
		}
		p.written[k] = op.Kind
	case store.OpDeleteOnce:
		if !exists {
			p.say("DeleteOnce of a key that is not there", k)
		} else if known && kind == store.OpPut {
			p.say("DeleteOnce of a key that was written with Put", k)
		}
	case store.OpDelete: // it may be written anew, in whatever way
		delete(p.written, k)
	case store.OpDeleteRange: // promises nothing
	}
}

func (p *promises) say(what string, k promised) {
	p.tell(fmt.Sprintf("%s: shard %d key %q", what, k.shard, k.key))
}

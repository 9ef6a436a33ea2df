package broker

import (
	"errors"
	"testing"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// TestDecide is the one decision about a send (R-DLQ-07).
func TestDecide(t *testing.T) {
	t.Parallel()
	low := errors.New("disk low")
	const byte0 = 1000
	for name, c := range map[string]struct {
		flow     Flow
		judge    judge
		is       fill
		want     verdict
		refuseAt time.Duration
	}{
		"no limit":                               {Flow{}, judge{}, fill{bytes: 1 << 40, messages: 1 << 40}, letIn, 0},
		"below the limit":                        {Flow{MaxBytes: byte0}, judge{}, fill{bytes: byte0 - 1}, letIn, 0},
		"at the limit waits":                     {Flow{MaxBytes: byte0}, judge{}, fill{bytes: byte0}, holdIt, 0},
		"messages below":                         {Flow{MaxMessages: 3}, judge{}, fill{messages: 2}, letIn, 0},
		"messages at":                            {Flow{MaxMessages: 3}, judge{}, fill{messages: 3}, holdIt, 0},
		"wait, asked for":                        {Flow{MaxBytes: byte0, OnFull: Wait}, judge{}, fill{bytes: byte0}, holdIt, 0},
		"refuse":                                 {Flow{MaxBytes: byte0, OnFull: Refuse}, judge{}, fill{bytes: byte0}, refuseIt, 0},
		"drop":                                   {Flow{MaxBytes: byte0, OnFull: Drop}, judge{}, fill{bytes: byte0}, dropIt, 0},
		"the broker's refusal is for the disk":   {Flow{MaxBytes: byte0}, judge{failAfter: 1}, fill{bytes: byte0}, holdIt, 0},
		"refused after a time, not before":       {Flow{MaxBytes: byte0, FailAfter: 3}, judge{waited: 2}, fill{bytes: byte0}, holdIt, 3},
		"refused after a time":                   {Flow{MaxBytes: byte0, FailAfter: 3}, judge{waited: 3}, fill{bytes: byte0}, refuseIt, 0},
		"over the limit":                         {Flow{MaxBytes: byte0, OnFull: Refuse}, judge{over: true}, fill{bytes: byte0}, letIn, 0},
		"a transaction has it already":           {Flow{MaxBytes: byte0, OnFull: Refuse}, judge{held: true}, fill{bytes: byte0}, letIn, 0},
		"a transaction has it already, and drop": {Flow{MaxBytes: byte0, OnFull: Drop}, judge{held: true}, fill{bytes: byte0}, letIn, 0},
		"a transaction waits":                    {Flow{MaxBytes: byte0}, judge{held: true}, fill{bytes: byte0}, holdIt, 0},
		"disk low":                               {Flow{}, judge{}, fill{disk: low}, refuseIt, 0},
		"disk low, and a transaction has it":     {Flow{}, judge{held: true}, fill{disk: low}, letIn, 0},
		"disk low waits where asked":             {Flow{}, judge{blocks: true}, fill{disk: low}, holdIt, 0},
		"disk low waits so long":                 {Flow{}, judge{blocks: true, failAfter: 5, waited: 4}, fill{disk: low}, holdIt, 5},
		"disk low waits no longer":               {Flow{}, judge{blocks: true, failAfter: 5, waited: 5}, fill{disk: low}, refuseIt, 0},
		"the entry waits where the broker fails": {Flow{OnFull: Wait}, judge{}, fill{disk: low}, holdIt, 0},
		"the entry fails where the broker waits": {Flow{OnFull: Refuse}, judge{blocks: true}, fill{disk: low}, refuseIt, 0},
		"the disk's reserve holds over a limit":  {Flow{MaxBytes: byte0}, judge{blocks: true, over: true}, fill{bytes: byte0, disk: low}, refuseIt, 0},
		"nothing is dropped for the disk":        {Flow{OnFull: Drop}, judge{blocks: true}, fill{disk: low}, holdIt, 0},
		"below its share of the store":           {Flow{StorePercent: 70}, judge{}, fill{storePercent: 69.9}, letIn, 0},
		"at its share of the store":              {Flow{StorePercent: 70}, judge{}, fill{storePercent: 70}, refuseIt, 0},
		"at its share of the store, and waits":   {Flow{StorePercent: 70}, judge{blocks: true}, fill{storePercent: 70}, holdIt, 0},
		"the whole store is the store's own":     {Flow{StorePercent: 100}, judge{}, fill{storePercent: 100}, letIn, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, refuseAt, why := c.judge.decide(orders, &c.flow, c.is)
			if v != c.want || refuseAt != c.refuseAt {
				t.Errorf("%v, refused at %v; want %v, %v", v, refuseAt, c.want, c.refuseAt)
			}
			if (why == nil) != (v == letIn) {
				t.Errorf("verdict %v for the reason %v", v, why)
			}
			if v == refuseIt && !errors.Is(why, message.ErrOverLimit) && !errors.Is(why, low) {
				t.Errorf("refused for %v, want over limit", why)
			}
		})
	}
}

package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// A Selection is the request of an action: which messages of the place it is for, of
// those that are there when the request comes. It says either IDs, or Selector, or All.
type Selection struct {
	IDs []string `json:"ids,omitempty"`
	All bool     `json:"all,omitempty"`
	// Selector is a JMS selector.
	Selector string `json:"selector,omitempty"`
	// Limit is how many at the most, the oldest first; 0: no limit.
	Limit int `json:"limit,omitempty"`
	// DryRun only counts what would be done.
	DryRun bool `json:"dryRun,omitempty"`
}

// A RedriveRequest is the request of /api/v1/queues/{queue}/redrive.
type RedriveRequest struct {
	// AsSent gives them the delivery mode that they were sent with, and their time to
	// live, beginning anew; else they are persistent and do not expire.
	AsSent bool `json:"asSent,omitempty"`
	Selection
}

// A MoveRequest is the request of /api/v1/queues/{queue}/move, and of .../copy.
type MoveRequest struct {
	// To is where they, or the copies, go: a queue's name, or "topic://" and a topic's, whose
	// durable subscriptions get them.
	To string `json:"to"`
	Selection
}

// A Where says whose messages a reply is about: a queue's, or those of a durable
// subscription.
type Where struct {
	Queue        string `json:"queue,omitempty"`
	ClientID     string `json:"clientId,omitempty"`
	Subscription string `json:"subscription,omitempty"`
}

// Stayed tells of messages that were asked for and stay.
type Stayed struct {
	// Out are those that consumers have, or that were acknowledged in transactions
	// which are still open.
	Out int `json:"out,omitempty"`
	// Left are those without a place to go to.
	Left int `json:"left,omitempty"`
	// Asked is how many ids were given; 0 where the request said no ids.
	Asked  int  `json:"asked,omitempty"`
	DryRun bool `json:"dryRun,omitempty"` // nothing was changed
}

// Redriven is the reply to a redrive.
type Redriven struct {
	Where
	// Moved is how many dead letters went back to where they failed.
	Moved int `json:"moved"`
	Stayed
}

// Moved is the reply to a move.
type Moved struct {
	Where
	To    string `json:"to"`
	Moved int    `json:"moved"`
	Stayed
}

// Copied is the reply to a copy.
type Copied struct {
	Where
	To     string `json:"to"`
	Copied int    `json:"copied"`
	Stayed
}

// Purged is the reply to a purge.
type Purged struct {
	Where
	Removed int `json:"removed"`
	Stayed
}

// selection checks what a request means.
func (sel *Selection) selection() (broker.Selection, error) {
	ways := 0
	for _, given := range []bool{sel.All, len(sel.IDs) > 0, sel.Selector != ""} {
		if given {
			ways++
		}
	}
	if ways != 1 || sel.Limit < 0 {
		return broker.Selection{}, fmt.Errorf(`say which: {"ids": [...]}, {"selector": "..."} or {"all": true}, with a "limit" of 1 or more if not all of them: %w`, message.ErrInvalid)
	}
	return broker.Selection{IDs: sel.IDs, Selector: sel.Selector, Max: sel.Limit, Dry: sel.DryRun}, nil
}

func (sel *Selection) stayed(o broker.Outcome) Stayed {
	return Stayed{Out: o.Out, Left: o.Left, Asked: len(sel.IDs), DryRun: sel.DryRun}
}

func (s *surface) redrive(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	var what RedriveRequest
	if err := decode(r, &what); err != nil {
		return nil, err
	}
	sel, err := what.selection()
	if err != nil {
		return nil, err
	}
	place := placeNamed(r)
	redrive := s.b.Redrive
	if what.AsSent {
		redrive = s.b.RedriveAsSent
	}
	o, err := redrive(r.Context(), place, sel)
	s.did(r, "dead letters brought back", place, &what.Selection, o, err)
	if err != nil {
		return nil, done(o.Taken, "brought back", err)
	}
	return Redriven{Where: whereOf(place), Moved: o.Taken, Stayed: what.stayed(o)}, nil
}

func (s *surface) move(r *http.Request) (any, error) {
	what, o, err := s.elsewhere(r, "moved", s.b.Move)
	if err != nil {
		return nil, err
	}
	return Moved{Where: whereOf(placeNamed(r)), To: what.To, Moved: o.Taken, Stayed: what.stayed(o)}, nil
}

func (s *surface) copy(r *http.Request) (any, error) {
	what, o, err := s.elsewhere(r, "copied", s.b.Copy)
	if err != nil {
		return nil, err
	}
	return Copied{Where: whereOf(placeNamed(r)), To: what.To, Copied: o.Taken, Stayed: what.stayed(o)}, nil
}

// elsewhere brings messages, or copies of them, from the place of a request to where
// it says. The request comes back with the target's full name.
func (s *surface) elsewhere(r *http.Request, did string, bring func(context.Context, broker.Place, message.Destination, broker.Selection) (broker.Outcome, error)) (what MoveRequest, o broker.Outcome, err error) {
	if err = query(r); err != nil {
		return
	}
	if err = decode(r, &what); err != nil {
		return
	}
	sel, err := what.selection()
	if err != nil {
		return
	}
	to, err := message.ParseDestination(what.To, message.Queue)
	if err != nil {
		return what, o, fmt.Errorf(`say where to, with "to": %w`, err)
	}
	what.To = to.String()
	place := placeNamed(r)
	o, err = bring(r.Context(), place, to, sel)
	s.did(r, "messages "+did, place, &what.Selection, o, err, slog.String("detail", what.To))
	if err != nil {
		err = done(o.Taken, did, err)
	}
	return what, o, err
}

func (s *surface) purge(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	var what Selection
	switch err := decode(r, &what); {
	case errors.Is(err, errNoObject):
		what.All = true
	case err != nil:
		return nil, err
	}
	sel, err := what.selection()
	if err != nil {
		return nil, err
	}
	place := placeNamed(r)
	o, err := s.b.Purge(r.Context(), place, sel)
	s.did(r, "messages removed", place, &what, o, err)
	if err != nil {
		return nil, done(o.Taken, "removed", err)
	}
	return Purged{Where: whereOf(place), Removed: o.Taken, Stayed: what.stayed(o)}, nil
}

// done says in an error how far an action came.
func done(n int, what string, err error) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("after %d messages were %s: %w", n, what, err)
}

// did logs what someone did to a place.
func (s *surface) did(r *http.Request, what string, place broker.Place, sel *Selection, o broker.Outcome, err error, more ...slog.Attr) {
	if sel.DryRun || err != nil && o.Taken == 0 {
		return
	}
	user, _, _ := r.BasicAuth()
	s.o.Log.LogAttrs(r.Context(), slog.LevelInfo, what, append([]slog.Attr{
		slog.String("dest", place.String()), slog.Int("messages", o.Taken), slog.String("by", user), slog.String("peer", r.RemoteAddr)}, more...)...)
}

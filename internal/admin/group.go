package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// Groups is the reply of /api/v1/queues/{queue}/groups: the message groups that have an
// owner now.
type Groups struct {
	Queue  string  `json:"queue"`
	Groups []Group `json:"groups"`
}

// A Group is a message group and the consumer that it belongs to.
type Group struct {
	Group    string `json:"group"`
	Consumer string `json:"consumer"`
	ClientID string `json:"clientId,omitempty"`
	Address  string `json:"address,omitempty"`
	// Out is how many of its messages the consumer has. Leaving says that the consumer gets
	// no more of them, and loses the group when it is done with those.
	Out     int  `json:"out"`
	Leaving bool `json:"leaving,omitempty"`
}

// A Release is the request of .../groups/release: one group or all.
type Release struct {
	Group string `json:"group,omitempty"`
	All   bool   `json:"all,omitempty"`
}

// Released is the reply: how many groups were taken from their owners, or will be.
type Released struct {
	Queue    string `json:"queue"`
	Released int    `json:"released"`
}

func (s *surface) groups(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	queue := queueNamed(r)
	if err := s.mayRead(r, broker.At(queue)); err != nil { // their names are of its messages
		return nil, err
	}
	all, err := s.b.Groups(r.Context(), queue)
	if err != nil {
		return nil, err
	}
	reply := Groups{Queue: nameOf(queue), Groups: make([]Group, 0, len(all))}
	for _, g := range all {
		reply.Groups = append(reply.Groups, Group(g))
	}
	return reply, nil
}

// releaseGroups takes message groups from their owners.
func (s *surface) releaseGroups(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	var what Release
	if err := decode(r, &what); err != nil && !errors.Is(err, errNoObject) {
		return nil, err
	}
	if what.All == (what.Group != "") {
		return nil, fmt.Errorf(`say which group: {"group":"NAME"}, or {"all":true}: %w`, message.ErrInvalid)
	}
	queue := queueNamed(r)
	n, err := s.b.Regroup(r.Context(), queue, what.Group)
	if err != nil {
		return nil, err
	}
	s.managed(r, "message groups taken from their owners", queue.String(), slog.Int("groups", n))
	return Released{Queue: nameOf(queue), Released: n}, nil
}

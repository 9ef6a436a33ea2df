package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"

	"github.com/nixiemq/nixie/internal/broker"
	"github.com/nixiemq/nixie/internal/message"
)

// A MoveConnections is the request of /api/v1/connections/move: how many clients are to
// go to other brokers.
type MoveConnections struct {
	// Count is how many, of whatever clients; All is all of them. One of the two is given.
	Count int  `json:"count,omitempty"`
	All   bool `json:"all,omitempty"`
	// DryRun sends nobody, and tells how many could go.
	DryRun bool `json:"dryRun,omitempty"`
}

// MovedConnections is the reply.
type MovedConnections struct {
	// Moved is how many clients are sent away, Could how many there are that can be:
	// those over failover that were told of other brokers.
	Moved  int  `json:"moved"`
	Could  int  `json:"could"`
	DryRun bool `json:"dryRun,omitempty"`
}

func (s *surface) moveConnections(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	var what MoveConnections
	if err := decode(r, &what); err != nil && !errors.Is(err, errNoObject) {
		return nil, err
	}
	most := what.Count
	switch {
	case what.Count < 0, what.All == (what.Count > 0):
		return nil, fmt.Errorf(`say how many: {"count":N}, N above 0, or {"all":true}: %w`, message.ErrInvalid)
	case what.All:
		most = math.MaxInt
	}
	if s.o.MoveClients == nil {
		return nil, fmt.Errorf("there are no other brokers that clients could go to: %w", message.ErrState)
	}
	could, moved, err := s.o.MoveClients(most, what.DryRun)
	if err != nil {
		return nil, err
	}
	if !what.DryRun {
		user, _, _ := r.BasicAuth()
		s.o.Log.LogAttrs(r.Context(), slog.LevelInfo, "clients sent to other brokers", slog.Int("clients", moved), slog.String("by", user), slog.String("peer", r.RemoteAddr))
	}
	return MovedConnections{Moved: moved, Could: could, DryRun: what.DryRun}, nil
}

// Connections is the reply of /api/v1/connections.
type Connections struct {
	Connections []Connection `json:"connections"`
}

// A Connection is one client with what it has open.
type Connection struct {
	ID        string     `json:"id"`
	ClientID  string     `json:"clientId,omitempty"`
	User      string     `json:"user,omitempty"`
	Address   string     `json:"address"`
	Protocol  string     `json:"protocol"`
	Listener  string     `json:"listener,omitempty"` // by which it came
	Consumers []Consumer `json:"consumers"`
	Producers []Producer `json:"producers"`
}

// A Consumer is one of a client's consumers, but for those of advisories.
type Consumer struct {
	ID           string `json:"id"`
	Destination  string `json:"destination"`
	Prefetch     int    `json:"prefetch"`
	Selector     string `json:"selector,omitempty"`
	Subscription string `json:"subscription,omitempty"` // its durable name
	Priority     int8   `json:"priority,omitempty"`
	Exclusive    bool   `json:"exclusive,omitempty"`
	Browser      bool   `json:"browser,omitempty"`
}

// A Producer is one of its producers.
type Producer struct {
	ID string `json:"id"`
	// Destination is empty where it names one with each message.
	Destination string `json:"destination,omitempty"`
}

// connections lists who is connected.
func (s *surface) connections(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	all := Connections{Connections: []Connection{}}
	at := map[string]int{}
	for _, c := range s.b.ClientsOpen() {
		at[c.ID] = len(all.Connections)
		all.Connections = append(all.Connections, Connection{ID: c.ID, ClientID: c.ClientID, User: c.User, Address: c.Address, Protocol: c.Protocol, Listener: c.Listener,
			Consumers: []Consumer{}, Producers: []Producer{}})
	}
	each := func(parties []broker.Party, add func(c *Connection, p *broker.Party)) {
		for i := range parties {
			if n, ok := at[parties[i].Connection]; ok {
				add(&all.Connections[n], &parties[i])
			}
		}
	}
	each(s.b.ConsumersOpen(), func(c *Connection, p *broker.Party) {
		c.Consumers = append(c.Consumers, Consumer{ID: p.ID, Destination: p.Destination.String(), Prefetch: p.Spec.Prefetch, Selector: p.Spec.Selector,
			Subscription: p.Spec.Subscription, Priority: p.Spec.Priority, Exclusive: p.Spec.Exclusive, Browser: p.Spec.Browser})
	})
	each(s.b.ProducersOpen(), func(c *Connection, p *broker.Party) {
		c.Producers = append(c.Producers, Producer{ID: p.ID, Destination: p.Destination.String()})
	})
	return all, nil
}

// ClosedConnection is the reply of .../close.
type ClosedConnection struct {
	ID string `json:"id"`
}

// closeConnection ends a client's connection.
func (s *surface) closeConnection(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	if err := decode(r, &struct{}{}); err != nil && !errors.Is(err, errNoObject) {
		return nil, err
	}
	id := r.PathValue("id")
	if err := s.b.EndConnection(id, fmt.Errorf("an operator has ended the connection: %w", message.ErrUnavailable)); err != nil {
		return nil, err
	}
	s.managed(r, "connection ended", id)
	return ClosedConnection{ID: id}, nil
}

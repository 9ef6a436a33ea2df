package admin

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/nixiemq/nixie/internal/message"
)

// Transactions is the reply of /api/v1/transactions: the distributed (XA)
// transactions there are, the oldest first.
type Transactions struct {
	Transactions []Transaction `json:"transactions"`
}

// A Transaction is one of them.
type Transaction struct {
	ID string `json:"id"` // "XID:[FORMAT,globalId=HEX,branchId=HEX]"
	// State is active, preparing, prepared, ending, by-hand (someone ended it, and its
	// transaction manager does not know yet) or timed-out (its client does not).
	State string `json:"state"`
	// Outcome is committed or rolled-back of one that was ended by hand.
	Outcome string `json:"outcome,omitempty"`
	// Begun is when its client began it; of one that was prepared before the broker
	// started, when that was. Prepared is when it was prepared.
	Begun    time.Time `json:"begun"`
	Prepared time.Time `json:"prepared,omitzero"`
	// Connection, ClientID and Address are of the client that began it, or prepared it.
	Connection string `json:"connection,omitempty"`
	ClientID   string `json:"clientId,omitempty"`
	Address    string `json:"address,omitempty"`
	// Sends is how many messages it sends, of Bytes in all, and Acks how many it takes
	// out of Destinations. Acks of one that is not prepared are not counted.
	Sends        int      `json:"sends"`
	Bytes        int64    `json:"bytes"`
	Acks         int      `json:"acks"`
	Destinations []string `json:"destinations,omitempty"`
}

// Ended is the reply to what ends a transaction by hand.
type Ended struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"` // committed, rolled-back, forgotten
}

// Outcomes of a transaction.
const (
	committed  = "committed"
	rolledBack = "rolled-back"
	forgotten  = "forgotten"
)

func (s *surface) transactions(r *http.Request) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	all := Transactions{Transactions: []Transaction{}}
	for _, t := range s.b.Transactions() {
		one := Transaction{ID: t.XID.String(), State: t.State, Begun: timeOf(t.Begun), Prepared: timeOf(t.Prepared),
			Outcome: t.Outcome, Connection: t.Connection, ClientID: t.ClientID, Address: t.Address, Sends: t.Sends, Bytes: t.Bytes, Acks: t.Acks}
		for _, d := range t.Queues {
			one.Destinations = append(one.Destinations, d.String())
		}
		all.Transactions = append(all.Transactions, one)
	}
	return all, nil
}

func (s *surface) commitTransaction(r *http.Request) (any, error) {
	return s.endTransaction(r, committed, func(x message.XID) error { return s.b.EndTransaction(r.Context(), x, true) })
}

func (s *surface) rollbackTransaction(r *http.Request) (any, error) {
	return s.endTransaction(r, rolledBack, func(x message.XID) error { return s.b.EndTransaction(r.Context(), x, false) })
}

func (s *surface) forgetTransaction(r *http.Request) (any, error) {
	return s.endTransaction(r, forgotten, s.b.ForgetTransaction)
}

// endTransaction ends one by hand, and logs who did so.
func (s *surface) endTransaction(r *http.Request, outcome string, end func(message.XID) error) (any, error) {
	if err := query(r); err != nil {
		return nil, err
	}
	x, err := message.ParseXID(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := end(x); err != nil {
		return nil, err
	}
	user, _, _ := r.BasicAuth()
	s.o.Log.LogAttrs(r.Context(), slog.LevelInfo, "transaction ended by hand", slog.String("detail", outcome), slog.String("tx", x.String()),
		slog.String("by", user), slog.String("peer", r.RemoteAddr))
	return Ended{ID: x.String(), Outcome: outcome}, nil
}

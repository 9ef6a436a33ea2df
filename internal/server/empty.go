package server

import "github.com/nixiemq/nixie/internal/store"

// empty deletes everything there is in the store: messages, subscriptions, what is
// scheduled and what is prepared (deleteAllMessagesOnStartup).
func (s *Server) empty() error {
	s.o.Log.Warn("everything stored is deleted, as the configuration asks at every start (deleteAllMessagesOnStartup)", "data", s.o.Config.DataDir)
	batch := new(store.Batch)
	batch.DeleteRange([]byte{}, nil)
	answered := make(chan error, 1)
	s.shard.Commit(batch, func(err error) { answered <- err })
	return <-answered
}

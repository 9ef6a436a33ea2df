package config

// A PreparedFate is what becomes at the start of transactions that were prepared before.
type PreparedFate uint8

// The fates there are.
const (
	KeepPrepared PreparedFate = iota
	CommitPrepared
	RollBackPrepared
)

var preparedFates = []yamlWord[PreparedFate]{{"keep", KeepPrepared}, {"commit", CommitPrepared}, {"rollback", RollBackPrepared}}

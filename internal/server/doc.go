// Package server puts a broker together from a configuration: the store, the
// broker, the listeners with their protocols, and the admin listener. It decides
// the order in which they start and stop.
//
//	start: store → records → broker → advisories → listeners → admin → ready line
//	stop:  listeners → connections → broker → records' shard → store
package server

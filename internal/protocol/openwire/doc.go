// Package openwire is the broker's side of an OpenWire connection: it turns
// frames into calls of package broker, and what the broker dispatches into
// frames. It decides nothing. The clause numbers in comments are those of the
// project's OpenWire specification, rule ids (R-BRK-13) those of its ActiveMQ
// specification.
//
//	           ┌──────────────── session ────────────────┐
//	socket ──► reader: wire.Decoder ─► commands ─► broker.Connection
//	socket ◄── writer: wire.Encoder ◄─ outbox ◄─── answers, broker.Sink
//	           watch: time limits and keep-alives, now and then
//	           └─────────────────────────────────────────┘
//
// Who owns what:
//
//   - what the client has opened (sessions, producers, consumers, transactions),
//     and the decoder: the reader, which is the goroutine that called Serve;
//   - the encoder and what it remembers of ids: the writer, whose goroutine is there
//     while there is something to write;
//   - the socket's end: the session's context, at whose end it is closed;
//   - the outbox and the pulse are shared, and say themselves by what they are guarded.
//
// The laws:
//
//   - commands of one connection are carried out in their order, and a command that
//     asks for an answer gets exactly one (OpenWire 9.1);
//   - one outgoing queue keeps the order of dispatches and answers; it never makes
//     the broker wait, and what it holds is bounded: replies because the reader
//     stops while many wait, deliveries by the consumers' windows, their bodies
//     because they are left to the store;
//   - whatever a peer sends, the worst that happens is the end of its own connection,
//     with a line in the log that has its address.
package openwire

// Package wire turns OpenWire frames into structs and back: versions 1 to 12,
// tight and loose encoding, with and without the object cache. The clause
// numbers in comments are those of the project's OpenWire specification.
//
// A connection has one [Decoder] and one [Encoder]. Both begin in the state
// before the negotiation, in which the only frame is a [WireFormatInfo], and
// are switched over with their Negotiated methods. Frames come from
// [ReadFrame]; [Encoder.Append] makes whole frames with their size in front.
//
// The data types, their fields and their marshalling are generated from
// commands.yaml. Written by hand are the destinations (four type codes, one
// struct), throwables, and the primitives beneath.
//
// Laws: input never panics; what a frame makes us allocate is bounded by a
// multiple of its length; a decoded frame shares memory with the bytes it was
// decoded from and with frames before it (see [Decoder.Decode]), and nobody
// writes to it.
//
// The package knows bytes only: no socket, no clock, no broker.
package wire

//go:generate go run ./gen

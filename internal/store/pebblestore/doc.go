// Package pebblestore is the engine for one machine: package store on Pebble, in
// a directory that one process holds at a time.
//
// # Commits
//
// The combiner merges what callers hand over; each group is one Pebble batch,
// which is visible at once and synced while the next group forms. A batch of a
// merged group is as atomic as the group. Nobody waits in a lock for the disk.
//
// # What may go wrong
//
//   - The process is killed, or power fails: what was answered is in the log.
//   - The log cannot be written: Options.OnFatal; the default ends the process. What
//     was not answered is unknown, and only the next start can tell.
//   - The disk is full: the reserve is given up (Options.ReserveBytes), the owner is
//     told (Options.OnTrouble), commits wait for room (Options.FullTime), and then
//     it is fatal. Pebble alone would wait inside a commit for ever.
//   - A start without room is refused with store.ErrFull.
//   - A second start is refused with store.ErrHeld and the holder's name.
//
// # Why these options
//
// Measured with 1 KiB values that cannot be compressed, on two cores that others
// used too, so only large differences and ratios of one run mean something. The
// benchmarks are in this package.
//
//   - Tables in memory of 16 MiB, of which 4 may wait to be written. The size
//     decides how much of what is consumed soon never reaches a table, and how much
//     log a start after a crash reads: the worst case of four full tables of tiny
//     records took 0.7 s to replay, a clean start with 200,000 records 30 ms. Of 64 MiB
//     they are a little faster under full load and cost 150 MiB more.
//   - A cache of 16 MiB. Pebble takes its tables in memory from it, so room for
//     three is added; without that no index block was ever kept, and each Get
//     read one.
//   - No compression: bodies hardly shrink at the speed that would be allowed, and
//     it made no difference to commits.
//   - The thresholds of level 0 are those of a store that is written to in bursts and
//     drained from its front.
//   - A base level of 16 MiB. What leaves level 0 is merged with all of the base level
//     that it overlaps: of 256 MiB, a dead letter queue of 150,000 messages was written
//     anew about once a second while short-lived messages went through another queue, at
//     twice the processor time for each. Filling and draining a deep queue takes a fifth
//     more of it with the small one.
//   - FlushDelayDeleteRange writes range deletions out after a second, so that
//     whole files can go; what point deletions leave is the sweeper's.
//   - FormatMajorVersion is pinned; FORMAT holds the version of the directory.
//
// Filling 200,000 x 1 KiB and deleting them one by one left 294 MiB on disk, and
// 89 MiB when the store had been quiet for five seconds, all of it log files kept
// for reuse: those are dropped then (keptLogs). Open and idle a store adds 3 MiB to a process; filled and drained at
// 50 MB/s the process reached 170 to 190 MiB, half of it the garbage collector's.
//
// Commits per second against a bare log that is appended to and synced for all
// who wait, in one run: 0.93 to 1.1 with one committer, 1.8 to 2.1 with 8, 0.88 to
// 1.3 with 64. It can be above one since a bare log splits its committers into two
// crowds that wait for each other's sync; see package combiner.
package pebblestore

// Package window says what a time window is: how records fall into windows,
// when a window closes, and how a key with its window is written.
//
// Windows are aligned to the epoch, their start is inclusive, their end
// exclusive. Time is that of the records: stream time is the highest timestamp
// that an operator has seen in its partition. A window is closed when
//
//	stream time >= end + grace
//
// and not a millisecond earlier. A record whose window is closed is late: it
// is dropped and counted, and it never reopens the window.
//
// Times are whole milliseconds since 1970, as records carry them. Timestamps
// before 1970 do not exist in a topic.
package window

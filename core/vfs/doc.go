// Package vfs is the file system as the log sees it: the dozen operations that
// durable storage needs, and no more, behind two small interfaces.
//
// There are two file systems. OS is the real one. NewMem keeps everything in
// memory: it carries the in-memory broker, and in tests it can crash. A
// [Mem.CrashClone] is what a disk may hold after the power went: synced data,
// plus a seeded share of the rest, torn and reordered. WithFaults wraps either
// and fails the operation you choose.
//
// # What a crash keeps
//
// Three rules are the contract that code above this package is written for,
// and the memory file system is exactly as cruel as they allow:
//
//  1. Bytes written to a file survive once File.Sync has returned nil after
//     the write. Unsynced bytes may survive in whole, in part, or not at all,
//     sector by sector and in any order; a hole reads as zeros.
//  2. A name (created, renamed, removed) survives once SyncDir of its folder
//     has returned nil. File.Sync does not make the file's own name durable.
//     Rename within a folder is atomic: after a crash both names are as before or both as after.
//  3. When Sync returns an error, the state of the unsynced bytes is unknown
//     and stays unknown: the kernel may have dropped them and will answer nil
//     the next time. Nobody may sync that file again and believe the answer,
//     not even another process: only bytes that were written again are durable
//     after a sync that succeeds. WithFaults around NewMem behaves like that.
//
// # Concurrency
//
// An FS is safe for concurrent use. A File allows concurrent ReadAt with one
// writer as long as the reader stays below bytes that were already written;
// two writers need their own lock.
package vfs

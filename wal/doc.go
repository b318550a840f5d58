// Package wal is a segmented, checksummed, append-only log of opaque payloads
// with group commit.
package wal

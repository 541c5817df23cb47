package image

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep a FIFO or a terminal in the place of a file from blocking.
const openFlags = unix.O_NONBLOCK | unix.O_NOCTTY

// inodeOf returns the number of a file's inode. While a file is mapped, no other gets
// its number. The device would tell nothing more of a path, and what stat says
// of it differs from the maps on btrfs and old overlay file systems.
func inodeOf(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}

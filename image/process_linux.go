package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// directoryFlags open a directory of /proc, which stays that of its process.
const directoryFlags = unix.O_PATH | unix.O_DIRECTORY

// isOf reports whether an open file is the mapped one: by device and inode. While a file is mapped, no other gets its number.
func (m *Mapping) isOf(file *os.File, info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Ino != m.file.inode {
		return false
	}
	return s.Dev == unix.Mkdev(m.file.major, m.file.minor) || hasOtherDevices(file)
}

// hasOtherDevices reports whether a file is on a file system of which stat shows another device than the maps do.
func hasOtherDevices(file *os.File) bool {
	var stat unix.Statfs_t
	err := unix.Fstatfs(int(file.Fd()), &stat)
	kind := uint32(stat.Type) // whose type in Go depends on the machine
	return err == nil && (kind == unix.OVERLAYFS_SUPER_MAGIC || kind == unix.BTRFS_SUPER_MAGIC || kind == bcachefsMagic)
}

const bcachefsMagic = 0xca451a4e

// hasInode reports whether the mapped file has the inode of another look at it.
func (m *Mapping) hasInode(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Ino == m.file.inode
}

// explainPermission says why the memory of a process must not be read: it is another user's, or Yama lets parents alone read their children.
func (p *Process) explainPermission() error {
	if info, err := os.Stat(p.dir); err == nil {
		stat, ok := info.Sys().(*syscall.Stat_t)
		scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
		if isOwn := ok && int(stat.Uid) == os.Geteuid(); isOwn && len(scope) > 0 && scope[0] != '0' {
			return fmt.Errorf("no permission to read it: Yama forbids it (kernel.yama.ptrace_scope is %c): run as root", scope[0])
		}
	}
	return errors.New("no permission to read it: that needs the same user or CAP_SYS_PTRACE")
}

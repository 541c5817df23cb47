//go:build unix

package replace

import (
	"io/fs"
	"os"
	"syscall"
)

// chown gives f the owner and group that info tells, and reports whether it
// has them.
func chown(f *os.File, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid() {
		return true
	}
	return f.Chown(int(st.Uid), int(st.Gid)) == nil
}

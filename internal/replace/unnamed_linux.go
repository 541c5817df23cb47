package replace

import (
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// inMemory is the length of the longest file without a name that is kept in memory, in
// bytes. Longer ones can be written out.
const inMemory = 32 << 20

// createUnnamed creates a file without a name, of about so many bytes. The descriptor is
// Unnamed's.
func (w *Writer) createUnnamed(path string, size int64) (*file, error) {
	fd := -1
	var err error
	if size > inMemory {
		fd, err = unix.Open(w.TempDir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	}
	if fd < 0 { // not all file systems have such files
		fd, err = unix.MemfdCreate("sdtconvert", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "convert", Path: path, Err: err}
	}
	w.Unnamed(path, fd)
	return &file{fd, "/proc/self/fd/" + strconv.Itoa(fd)}, nil
}

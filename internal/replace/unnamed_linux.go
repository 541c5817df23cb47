package replace

import (
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// inMemory is the length of the longest file without a name that is kept in memory, in
// bytes. Longer ones can be written out.
const inMemory = 32 << 20

// createUnnamed creates a file without a name, of about so many bytes. The descriptor that TakeDescriptor
// gets is another one of the same file.
func (w *Writer) createUnnamed(path string, size int64) (*os.File, error) {
	fd, err := openUnnamed(w.TempDir, size)
	if err != nil {
		return nil, &fs.PathError{Op: "convert", Path: path, Err: err}
	}
	w.TakeDescriptor(path, fd)
	duplicate, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "convert", Path: path, Err: err}
	}
	return os.NewFile(uintptr(duplicate), "/proc/self/fd/"+strconv.Itoa(duplicate)), nil
}

func openUnnamed(directory string, size int64) (fd int, err error) {
	if size > inMemory {
		// Not all file systems have such files.
		if fd, err = unix.Open(directory, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600); err == nil {
			return fd, nil
		}
	}
	return unix.MemfdCreate("sdtconvert", unix.MFD_CLOEXEC)
}

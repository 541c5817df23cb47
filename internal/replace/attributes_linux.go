package replace

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// accessList is the attribute that holds a POSIX access list.
const accessList = "system.posix_acl_access"

// ofContents are attributes that speak of a file's contents, which are others now. The kernel drops capabilities when a file is
// written, too.
var ofContents = []string{"security.capability", "security.ima", "security.evm"}

// copyAttributes gives a file the extended attributes of the open file from: the access list, labels, and what users have
// written. An access list that the file has from its directory, and from has not, is removed. inPlace says that the file takes
// the place of from. Otherwise its label is that of its directory, and what its file system does not know is left out, but for the
// access list.
func copyAttributes(to *os.File, from int, inPlace bool) error {
	wanted, err := attributes(from)
	if err != nil {
		return attributeError(to, "attributes", err)
	}
	fd := int(to.Fd())
	existing, err := attributes(fd)
	if err != nil {
		return attributeError(to, "attributes", err)
	}
	if slices.Contains(existing, accessList) && !slices.Contains(wanted, accessList) {
		if err := unix.Fremovexattr(fd, accessList); err != nil {
			return attributeError(to, accessList, err)
		}
	}
	for _, name := range wanted {
		if slices.Contains(ofContents, name) || !inPlace && strings.HasPrefix(name, "security.") {
			continue
		}
		err := copyAttribute(fd, from, name)
		if errors.Is(err, unix.EOPNOTSUPP) && !inPlace && name != accessList {
			continue
		}
		if err != nil {
			return attributeError(to, name, err)
		}
	}
	return nil
}

func attributeError(to *os.File, name string, err error) error {
	return &fs.PathError{Op: "copy " + name + " to", Path: to.Name(), Err: err}
}

// copyAttribute copies an attribute, if its value differs.
func copyAttribute(to, from int, name string) error {
	value, err := attribute(from, name)
	if err != nil {
		return err
	}
	if now, err := attribute(to, name); err == nil && bytes.Equal(now, value) {
		return nil
	}
	return unix.Fsetxattr(to, name, value, 0)
}

// attributes returns the names of all attributes; none where the file system has no attributes.
func attributes(fd int) ([]string, error) {
	data, err := grow(func(b []byte) (int, error) { return unix.Flistxattr(fd, b) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == 0 }), err
}

func attribute(fd int, name string) ([]byte, error) {
	return grow(func(b []byte) (int, error) { return unix.Fgetxattr(fd, name, b) })
}

// grow calls read with a buffer that is large enough.
func grow(read func(b []byte) (int, error)) ([]byte, error) {
	for size := 256; ; size *= 4 {
		b := make([]byte, size)
		n, err := read(b)
		if errors.Is(err, unix.ERANGE) && size < 1<<20 {
			continue
		}
		return b[:max(n, 0)], err
	}
}

// changeTime sets the time of modification of an open file, whatever its name stands for by now: utimensat(2) takes no path for that.
func changeTime(f *os.File, modified time.Time) error {
	to, err := unix.TimeToTimespec(modified)
	times := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, to}
	if err == nil {
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, f.Fd(), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
		if errno != 0 {
			err = errno
		}
	}
	if err != nil {
		return &fs.PathError{Op: "set the time of", Path: f.Name(), Err: err}
	}
	return nil
}

package ld

import "golang.org/x/sys/unix"

func openDescriptor(path string) (fd int, err error) {
	return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

func closeDescriptor(fd int) { unix.Close(fd) }

// newDescriptor returns a file in memory that holds data.
func newDescriptor(data []byte) (fd int, err error) {
	if fd, err = unix.MemfdCreate("sdtconvert", unix.MFD_CLOEXEC); err != nil {
		return fd, err
	}
	for at := 0; at < len(data); {
		n, err := unix.Pwrite(fd, data[at:], int64(at))
		if err != nil {
			unix.Close(fd)
			return -1, err
		}
		at += n
	}
	return fd, nil
}

package replace

import (
	"os"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/input"
)

// copyRange copies n bytes within the kernel to where dst is, and returns how many it has
// copied before it could not go on: file systems and kernels differ in what they support,
// and the caller copies the rest itself. io.Copy loses count where a kernel fails after a part.
func copyRange(dst *os.File, src *input.File, off, n int64) (int64, error) {
	done := int64(0)
	for done < n {
		from := off + done
		copied, err := unix.CopyFileRange(int(src.Fd()), &from, int(dst.Fd()), nil, int(min(n-done, 1<<30)), 0)
		switch err {
		case nil:
		case unix.EINTR:
			continue
		case unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EFBIG:
			return done, &os.PathError{Op: "write", Path: dst.Name(), Err: err}
		default:
			return done, nil
		}
		if copied == 0 {
			return done, nil
		}
		done += int64(copied)
	}
	return done, nil
}

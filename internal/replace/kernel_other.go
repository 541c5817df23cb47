//go:build !linux

package replace

import "os"

// copyRange leaves the copying to the caller.
func copyRange(dst *os.File, dstOff int64, src *os.File, srcOff, n int64) (int64, error) {
	return 0, nil
}

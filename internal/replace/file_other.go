//go:build !linux

package replace

import (
	"io/fs"
	"os"
)

// file is a new file that is open for reading and writing.
type file = os.File

// create creates a file that is not there yet.
func create(path string, mode fs.FileMode) (*file, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

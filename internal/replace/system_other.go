//go:build !unix

package replace

import (
	"io/fs"
	"os"
)

// chown has nothing to do where files have no owner of this kind.
func chown(*os.File, fs.FileInfo) bool { return true }

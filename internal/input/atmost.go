package input

import (
	"fmt"
	"io"
	"os"
)

// ReadAtMost returns what a file holds, which may be no regular file. It is an error that the
// file has more than so many MiB.
func ReadAtMost(name string, mebibytes int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mebibytes<<20+1))
	if err == nil && int64(len(data)) > mebibytes<<20 {
		err = fmt.Errorf("%s: has more than %d MiB", name, mebibytes)
	}
	return data, err
}

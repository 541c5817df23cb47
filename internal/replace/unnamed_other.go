//go:build !linux

package replace

import (
	"errors"
	"os"
)

func (w *Writer) createUnnamed(string, int64) (*os.File, error) { return nil, errors.ErrUnsupported }

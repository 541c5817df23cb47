//go:build !linux

package replace

import "errors"

func (w *Writer) createUnnamed(string, int64) (*file, error) { return nil, errors.ErrUnsupported }

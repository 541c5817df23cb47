//go:build !unix

package main

import "sdtconvert/internal/replace"

type rawFile struct{ *replace.Input }

// openRaw opens a regular file, and reports whether it is one.
func openRaw(path string) (f rawFile, size int64, ok bool) {
	in, err := replace.Open(path)
	if err != nil {
		return f, 0, false
	}
	return rawFile{in}, in.Info.Size(), true
}

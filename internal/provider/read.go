package provider

import (
	"fmt"
	"io"
	"os"
)

// maxSize is the size of the largest file, in bytes. Its tokens take some hundred times that.
const maxSize = 4 << 20

// Read reads a file. With preprocess, which returns what a preprocessor makes of the file,
// it parses that instead.
func Read(path string, preprocess func(path string) (text string, err error)) (*File, error) {
	text, err := readFile(path)
	if err == nil && preprocess != nil {
		text, err = preprocess(path)
	}
	if err != nil {
		return nil, err
	}
	return Parse(NewLines(path, text))
}

// readFile reads a file that is not too large.
func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("%s: is too large: more than %d bytes", path, maxSize)
	}
	return string(text), err
}

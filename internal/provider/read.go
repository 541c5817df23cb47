package provider

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sdtconvert/internal/provider/cpp"
	"sdtconvert/internal/provider/token"
)

// Reader reads provider files.
type Reader struct {
	Preprocess bool // give files to a preprocessor
	cpp.Options
	// Compiler is the preprocessor of a compiler, for files that need it: it returns what
	// that writes of a file.
	Compiler func(path string) (string, error)
}

// maxSize is the size of the largest file, in bytes. Its tokens take some hundred times that.
const maxSize = 4 << 20

// ReadFile reads a file that is not too large, as Options.ReadFile does.
func ReadFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("%s: %w: more than %d bytes", path, cpp.ErrTooLarge, maxSize)
	}
	return string(text), err
}

// Read reads a file.
func (r *Reader) Read(path string) (*File, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !r.Preprocess {
		return Parse(Lines{Scanner: token.New(path, text)})
	}
	pre := cpp.New(path, text, r.Options)
	file, err := Parse(pre)
	if pre.Err() == nil {
		return file, err
	}
	needs, ok := errors.AsType[*cpp.NeedsCompiler](pre.Err())
	if !ok {
		return nil, pre.Err()
	}
	if text, err = r.Compiler(path); err != nil {
		return nil, fmt.Errorf("%w, so a compiler has to preprocess the file: %v", needs, err)
	}
	return Parse(Lines{Scanner: token.New(path, text)})
}

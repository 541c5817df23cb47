// Package responsefile reads response files, of which each word is an argument.
package responsefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
)

// A response file that includes itself ends at the first of these; libiberty
// counts the files only.
const (
	maxResponseFiles = 2000
	maxResponseDepth = 32
	maxResponseSize  = 16 << 20 // bytes, of all together; a word of one takes 300 times that
)

type responses struct {
	literalAfter []string
	files, size  int
	pipe         bool // one was no regular file
}

// Expand replaces each word @FILE by the words of FILE, as libiberty does, and so all GNU
// tools. A word whose FILE cannot be read stands for itself. It fails for a directory, for
// a file with a zero byte, and for files that include themselves. A word behind one of
// literalAfter stands for itself too.
func Expand(args []string, literalAfter ...string) ([]string, error) {
	r := responses{literalAfter: literalAfter}
	return r.expand(args, 0)
}

// ExpandOnce is Expand for words that are to be passed on. isRead says that a response file was a pipe, which nobody
// can read again: pass the expanded words on.
func ExpandOnce(args []string) (expanded []string, isRead bool, err error) {
	r := responses{}
	expanded, err = r.expand(args, 0)
	return expanded, r.pipe, err
}

func (r *responses) expand(args []string, depth int) ([]string, error) {
	at := -1
	for i, arg := range args {
		if len(arg) > 1 && arg[0] == '@' {
			at = i
			break
		}
	}
	if at < 0 {
		return args, nil
	}
	out := append([]string(nil), args[:at]...)
	for i, arg := range args[at:] {
		name, ok := strings.CutPrefix(arg, "@")
		if !ok || name == "" || at+i > 0 && slices.Contains(r.literalAfter, args[at+i-1]) {
			out = append(out, arg)
			continue
		}
		text, err := r.read(name)
		if errors.Is(err, syscall.EISDIR) {
			return nil, err
		}
		if err != nil {
			out = append(out, arg)
			continue
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil, fmt.Errorf("response file %s: holds a zero byte, which no argument can", name)
		}
		r.files++
		r.size += len(text)
		if depth >= maxResponseDepth || r.files > maxResponseFiles || r.size > maxResponseSize {
			return nil, fmt.Errorf("response file %s includes itself, or too much", name)
		}
		words, err := r.expand(Split(text), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, words...)
	}
	return out, nil
}

// read reads a response file, and no more of it than shows that it is too large.
func (r *responses) read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		r.pipe = true
	}
	return io.ReadAll(io.LimitReader(f, int64(maxResponseSize-r.size)+1))
}

const space = " \t\r\n\v\f"

// Split divides text into words as libiberty does, and lld where it is not told
// otherwise: white space separates, ' and " quote, and a backslash keeps the next
// character from meaning anything, in quotes too. A quote that is not closed ends
// with the text.
func Split(text []byte) []string {
	var words []string
	for {
		text = bytes.TrimLeft(text, space)
		if len(text) == 0 {
			return words
		}
		var word []byte
		word, text = splitWord(text)
		words = append(words, string(word))
	}
}

func splitWord(text []byte) (word, after []byte) {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\':
			if i++; i < len(text) {
				word = append(word, text[i])
			}
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && strings.IndexByte(space, c) >= 0:
			return word, text[i:]
		default:
			word = append(word, c)
		}
	}
	return word, nil
}

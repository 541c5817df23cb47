// Package cpp is a preprocessor of C that is large enough for provider files: macros of both
// kinds, conditions, and the headers of a project.
//
// What the headers of a system need is a compiler's to know: they test hundreds of macros
// of their own. So where a file asks for one of those, or tests a macro that only a
// compiler defines, Next ends with a NeedsCompiler, and all of the file has to go
// through a compiler instead (Compiler). A file without them needs none, so that a header is
// made on a host that cannot compile for the target.
package cpp

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"sdtconvert/internal/provider/token"
)

// Definition is a macro that the command line defines or undefines.
type Definition struct {
	Text  string // NAME, NAME=VALUE or NAME(PARAMETERS)=VALUE
	Undef bool
}

// Options are what a command line says.
type Options struct {
	Folders     []string     // of headers, -I
	Definitions []Definition // -D and -U, in their order
	Headers     []string     // read before the file, -H
	System      []string     // macros by which the target's system is known, nil for Linux
	// ReadFile reads a header. What it returns is kept for as long as its tokens are. An
	// error that is ErrTooLarge ends the reading; all others mean that the header is not
	// there.
	ReadFile func(path string) (string, error)
}

// ErrTooLarge says that nothing is to read a file, no compiler either.
var ErrTooLarge = errors.New("is too large")

// NeedsCompiler says what only a compiler knows.
type NeedsCompiler struct {
	Pos token.Pos
	Why string
}

func (e *NeedsCompiler) Error() string { return fmt.Sprintf("%v: %s", e.Pos, e.Why) }

// Limits of what a file may make of itself.
const (
	maxDepth    = 200     // of headers in headers, and of macros in macros
	maxExpanded = 1 << 18 // tokens that come of macros
	maxHeaders  = 4096    // that are read, counting repetitions
	maxRead     = 1 << 26 // bytes of all headers

	maxParameters = 256 // of a macro; each name in it is compared with all of them
)

// Preprocessor reads the tokens of a file as C's phases 1 to 4 leave them. Directives
// among them are pragmas.
type Preprocessor struct {
	o       Options
	sources []*source
	macros  map[string]*macro
	once    map[string]bool // headers that are not read again
	pending []item          // what comes next, the last first
	left    int             // tokens that macros may still make
	headers int
	read    int
	depth   int // of argument lists that are being expanded
	err     error
}

// source is a file that is being read.
type source struct {
	*token.Scanner
	folder string
	groups []group
}

// item is a token and the macros that it came of.
type item struct {
	token.Token
	from *origin
}

// New starts with a file.
func New(file, text string, o Options) *Preprocessor {
	p := &Preprocessor{o: o, macros: map[string]*macro{}, once: map[string]bool{}, left: maxExpanded}
	p.predefine()
	p.push(file, text)
	for _, header := range slices.Backward(o.Headers) {
		p.include(token.Pos{File: "-H", Line: 1, Column: 1}, header, false)
	}
	return p
}

func (p *Preprocessor) push(file, text string) {
	p.sources = append(p.sources, &source{Scanner: token.New(file, text), folder: filepath.Dir(file)})
}

// Err is what ended the tokens before the end of the file.
func (p *Preprocessor) Err() error { return p.err }

func (p *Preprocessor) fail(pos token.Pos, cure, format string, args ...any) {
	if p.err == nil {
		p.err = &token.Error{Pos: pos, What: fmt.Sprintf(format, args...), Cure: cure}
	}
}

func (p *Preprocessor) needsCompiler(pos token.Pos, format string, args ...any) {
	if p.err == nil {
		p.err = &NeedsCompiler{pos, fmt.Sprintf(format, args...)}
	}
}

// Next returns the next token, and false at the end or where Err is not nil.
func (p *Preprocessor) Next() (token.Token, bool) {
	i, ok := p.expanded()
	return i.Token, ok
}

// expanded returns the next token that is no macro.
func (p *Preprocessor) expanded() (item, bool) {
	for {
		i, ok := p.raw()
		if !ok {
			return i, false
		}
		if i.Kind != token.Name || !p.expand(i) {
			return i, p.err == nil
		}
	}
}

// raw returns the next token as it stands.
func (p *Preprocessor) raw() (item, bool) {
	if n := len(p.pending); n > 0 && p.err == nil {
		i := p.pending[n-1]
		p.pending = p.pending[:n-1]
		return i, true
	}
	for p.err == nil && len(p.sources) > 0 {
		s := p.sources[len(p.sources)-1]
		t, ok := s.Next()
		switch {
		case !ok && len(s.groups) > 0:
			p.fail(s.groups[len(s.groups)-1].pos, "close it with #endif", "this group of lines does not end")
		case !ok:
			p.sources = p.sources[:len(p.sources)-1]
		case t.Kind == token.Directive:
			if pragma, ok := p.directive(s, t); ok && p.err == nil {
				return item{Token: pragma}, true
			}
		case s.active():
			return item{Token: t}, true
		}
	}
	return item{}, false
}

// unread puts a token back.
func (p *Preprocessor) unread(i item) { p.pending = append(p.pending, i) }

// include begins to read a header.
func (p *Preprocessor) include(pos token.Pos, name string, angled bool) {
	if len(p.sources) > maxDepth {
		p.fail(pos, "one of them includes itself", "headers are included in each other, more than %d deep", maxDepth)
		return
	}
	folders := p.o.Folders
	if !angled && len(p.sources) > 0 {
		folders = append([]string{p.sources[len(p.sources)-1].folder}, folders...)
	}
	if filepath.IsAbs(name) {
		folders = []string{""}
	}
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if p.once[path] {
			return
		}
		text, err := p.o.ReadFile(path)
		if errors.Is(err, ErrTooLarge) {
			p.fail(pos, "", "%v", err)
			return
		}
		if err != nil {
			continue
		}
		p.headers++
		p.read += len(text)
		if p.headers > maxHeaders || p.read > maxRead {
			p.fail(pos, "one of them includes itself", "more than %d headers, or %d bytes of them, are included", maxHeaders, maxRead)
			return
		}
		p.push(path, text)
		return
	}
	p.needsCompiler(pos, "the header %s is in no folder that -I names", name)
}

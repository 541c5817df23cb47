package ld

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/paths"
	"sdtconvert/internal/replace"
)

// output returns the file that a linker writes.
func output(ln *line.Line) string {
	if ln.Output == "" {
		return "a.out"
	}
	return ln.Output
}

// rewriteReports has the files that tell what was linked name the inputs, and not
// their copies.
func rewriteReports(files *replace.Writer, link *prepared) error {
	for _, report := range link.Reports {
		path := report.Path
		if link.Rules.Dialect == line.GNU && !report.Makefile {
			path = withOutput(path, output(link.Line))
		}
		file := link.InDirectory(path)
		info, err := os.Stat(file)
		if err == nil && info.IsDir() && !report.Makefile { // GNU ld: a directory for the map
			file = paths.Join(file, filepath.Base(output(link.Line))+".map")
			info, err = os.Stat(file)
		}
		if err != nil || !info.Mode().IsRegular() {
			continue // the linker knows why
		}
		if err := link.rewrite(files, file, report.Makefile); err != nil {
			return err
		}
	}
	return nil
}

// withOutput replaces what stands for the output in GNU ld's name of a map.
func withOutput(path, output string) string {
	before, after, ok := strings.Cut(path, "%")
	if !ok {
		return path
	}
	return before + output + cmp.Or(after, ".map")
}

// maxHeld bounds the memory that a report of any size is read with, in bytes, together
// with the lengths of names.
const maxHeld = 64 << 10

// rewrite replaces names in a file, unless there are none. The file passes through
// memory in pieces: a map may be larger than all inputs.
func (r *prepared) rewrite(files *replace.Writer, file string, makefile bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	named, err := r.mentionsTemp(f, makefile)
	if err != nil || !named {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return files.Create(file, func(to io.Writer) error {
		buffered := bufio.NewWriterSize(to, maxHeld)
		through := r.restorer(buffered, makefile)
		if _, err := io.CopyBuffer(through, onlyReader{f}, make([]byte, maxHeld)); err != nil {
			return err
		}
		return errors.Join(through.Close(), buffered.Flush())
	})
}

// onlyReader hides all other methods of a reader, so that it is read in pieces.
type onlyReader struct{ io.Reader }

// mentionsTemp reports whether a report names anything in the temporary directory.
func (r *prepared) mentionsTemp(report io.Reader, makefile bool) (bool, error) {
	prefixes := [][]byte{[]byte(r.names.Prefix())}
	if makefile {
		for _, s := range r.spellings() {
			prefixes = append(prefixes, []byte(s.name(r.names.Prefix())))
		}
	}
	longest := 0
	for _, p := range prefixes {
		longest = max(longest, len(p))
	}
	held := make([]byte, 0, maxHeld+longest)
	for {
		n, err := report.Read(held[len(held):cap(held)])
		held = held[:len(held)+n]
		for _, p := range prefixes {
			if bytes.Contains(held, p) {
				return true, nil
			}
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if keep := longest - 1; len(held) > keep {
			held = held[:copy(held, held[len(held)-keep:])]
		}
	}
}

// restorer puts the names of the inputs into what is written to it.
func (r *prepared) restorer(to io.Writer, makefile bool) io.WriteCloser {
	w := r.names.Writer(to)
	if !makefile {
		return w
	}
	chain := writers{w}
	before := func(w io.WriteCloser) { chain = append(writers{w}, chain...) }
	for _, s := range slices.Backward(r.spellings()) {
		before(r.names.Respell(s.name, s.instead).Writer(chain[0]))
	}
	if r.addition != nil {
		written := map[string]bool{}
		for _, s := range append(r.spellings(), spelling{name: func(name string) string { return name }}) {
			if name := s.name(r.addition.file); !written[name] {
				written[name] = true
				before(newPrerequisiteDropper(chain[0], name))
			}
		}
	}
	return chain
}

// writers write to each other, the first to the second. To close them is to close the
// first first.
type writers []io.WriteCloser

func (w writers) Write(b []byte) (int, error) { return w[0].Write(b) }

func (w writers) Close() error {
	for _, one := range w {
		if err := one.Close(); err != nil {
			return err
		}
	}
	return nil
}

// spelling is how linkers write names in a rule of make.
type spelling struct {
	name    func(name string) string // of a temporary file
	instead func(name string) string // of an input, in its place
}

// spellings returns those that are looked for, but for names that are written as they
// are. A name that one of them spells as another is that of the first.
func (r *prepared) spellings() []spelling {
	if r.Rules.Dialect == line.LLD {
		return []spelling{{lldName, func(name string) string { return makefileName(path.Clean(name)) }}}
	}
	return []spelling{{makefileName, makefileName}, {lldName, makefileName}}
}

// lldName writes a name as lld does: all backslashes are slashes, as they are on Windows,
// and ".." goes back.
func lldName(name string) string {
	return makefileName(path.Clean(strings.ReplaceAll(name, `\`, "/")))
}

// makefileName writes a name as make reads it.
func makefileName(name string) string {
	return strings.NewReplacer(" ", `\ `, "#", `\#`, "$", "$$").Replace(name)
}

package ld

import (
	"fmt"
	"io"
	"strings"

	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
)

// script is a linker script, with those that it includes.
type script struct {
	value    string // of the flag that names it
	path     string // as the linker opens it
	place    line.ScriptPlace
	text     *line.Script
	includes []*script // of text.Includes, nil for what is not there
	base     *script   // whose path the linker looks its inputs up by: it, or one that includes it
	cut      bool      // there is more of it than was read
}

// Scripts that include each other are read no further than linkers do, and so much of
// them at most.
const (
	maxScript       = 16 << 20 // bytes
	maxScriptDepth  = 10
	maxScriptsBelow = 1000
)

// scriptReader reads scripts.
type scriptReader struct {
	line    *line.Line
	dialect line.Dialect
	inPlace bool // inputs are converted themselves
}

// flags reads the scripts that flags name. What cannot be opened is the linker's to
// complain of.
func (r scriptReader) flags() (all []*script, err error) {
	for i := range r.line.Args {
		arg := &r.line.Args[i]
		if arg.Name != "script" && arg.Name != "default-script" && arg.Name != "mri-script" {
			continue
		}
		path, file := r.line.ScriptFile(arg.Value, i)
		if file == "" {
			continue
		}
		f, err := input.Open(file)
		if err != nil {
			continue
		}
		s, err := r.tree(f, path, r.dialect.Place(path, true, arg.State))
		f.Close()
		if err != nil {
			return nil, err
		}
		s.value = arg.Value
		all = append(all, s)
		s.each(func(s *script) { r.line.SearchIn(s.text.Directories, i, true) })
	}
	return all, nil
}

// tree reads a script and those that it includes.
func (r scriptReader) tree(f *input.File, path string, place line.ScriptPlace) (*script, error) {
	left := maxScriptsBelow
	root, err := r.read(f, path, place, line.TopLevel, maxScriptDepth, &left)
	if r.dialect == line.GNU || r.dialect == line.LLD {
		root.each(func(s *script) { s.base = root })
	}
	return root, err
}

func (r scriptReader) read(f *input.File, path string, place line.ScriptPlace, within line.Context, depth int, left *int) (*script, error) {
	if *left--; *left < 0 {
		return nil, fmt.Errorf("%s: more than %d scripts are included", path, maxScriptsBelow)
	}
	text, err := parseScript(r.dialect, f, f.Size(), within)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	s := &script{path: path, place: place, text: text, cut: f.Size() > maxScript}
	s.base = s
	s.includes = make([]*script, len(s.text.Includes))
	if depth == 0 {
		return s, nil
	}
	for i, include := range s.text.Includes {
		path, file := r.line.ScriptFile(include.Text, place.At)
		if file == "" {
			continue
		}
		f, err := input.Open(file)
		if err != nil {
			continue
		}
		s.includes[i], err = r.read(f, path, r.dialect.Included(place, path), include.Within, depth-1, left)
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// parseScript reads a script of so many bytes, as far as maxScript.
func parseScript(d line.Dialect, r io.ReaderAt, size int64, within line.Context) (*line.Script, error) {
	text := make([]byte, min(size, maxScript))
	if _, err := r.ReadAt(text, 0); err != nil {
		return nil, err
	}
	return d.ParseScript(string(text), within), nil
}

// each calls a function for a script and all that it includes.
func (s *script) each(f func(*script)) {
	if s == nil {
		return
	}
	f(s)
	for _, included := range s.includes {
		included.each(f)
	}
}

// scripted returns the files that a script has the linker read, or may have it read.
func (r scriptReader) scripted(root *script) (files []named) {
	root.each(func(s *script) {
		if s.place.Foreign {
			return
		}
		for _, name := range s.text.Inputs {
			found := r.line.ScriptInput(r.dialect, s.place, name)
			if found.File != "" {
				files = append(files, named{found.Path, found.File, root.path})
			}
			if found.Other != "" {
				files = append(files, named{found.Other, r.line.InDirectory(found.Other), root.path})
			}
		}
		if r.inPlace {
			for _, word := range literal(s.text.Words) {
				if found := r.line.ScriptInput(r.dialect, s.place, line.Name{Text: word}); found.File != "" {
					files = append(files, named{found.Path, found.File, root.path})
				}
			}
		}
		for _, p := range s.text.Patterns {
			if found := r.loaded(p); found.File != "" {
				files = append(files, named{found.Path, found.File, root.path})
			}
		}
	})
	return files
}

// loaded returns the file that a pattern without wildcards names. GNU ld reads it as an
// input, if it is not one yet.
func (r scriptReader) loaded(p line.Pattern) (found line.ScriptInput) {
	if r.dialect != line.GNU || p.Excludes || strings.Contains(p.Text, ":") || line.IsWildcard(p.Text) || p.Text == "" {
		return found
	}
	return r.line.ScriptInput(r.dialect, line.ScriptPlace{}, p.Name)
}

// literal returns words that may name a file, and are neither patterns nor sections.
func literal(words []string) []string {
	var names []string
	for _, w := range words {
		section := strings.HasPrefix(w, ".") && !strings.HasPrefix(w, "./") && !strings.HasPrefix(w, "../")
		if strings.ContainsAny(w, "./") && !line.IsWildcard(w) && !section {
			names = append(names, w)
		}
	}
	return names
}

package ld

import (
	"errors"
	"sync"

	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
)

// named is a file that a linker reads.
type named struct {
	path   string // as the linker is told, or finds it
	file   string // where it is
	script string // that names it, or "" if the line does
}

// found are the files that a line names.
type found struct {
	files []named        // in the order of the line
	byArg map[int]string // the path of the file, by the argument
}

// findFiles finds the files that a line names.
func findFiles(ln *line.Line) found {
	f := found{byArg: make(map[int]string, len(ln.Args))}
	add := func(i int, path, file string) {
		f.files = append(f.files, named{path: path, file: file})
		f.byArg[i] = path
	}
	target := sync.OnceValue(func() input.Target { return targetOf(ln) })
	for i := range ln.Args {
		arg := &ln.Args[i]
		switch {
		case arg.Foreign:
		case arg.Kind == line.Input:
			add(i, arg.Value, ln.InDirectory(arg.Value))
		case arg.Kind == line.Library:
			if file := fitting(ln, ln.Candidates(arg), target); file != "" {
				add(i, file, file)
			}
		}
	}
	return f
}

// fitting takes the first of several files that is for the target of the link, as most
// linkers do. A single file is always taken.
func fitting(ln *line.Line, files []string, target func() input.Target) string {
	if len(files) < 2 || ln.Rules.TakesFirst {
		files = append(files, "")
		return files[0]
	}
	unknown := input.Target{}
	for _, file := range files {
		if t := targetOfFile(file); t == unknown || target() == unknown || t == target() {
			return file
		}
	}
	return ""
}

// targetOf returns that of the first input which says what it is for.
func targetOf(ln *line.Line) input.Target {
	for i := range ln.Args {
		if arg := &ln.Args[i]; arg.Kind == line.Input && !arg.Foreign {
			if t := targetOfFile(ln.InDirectory(arg.Value)); t != (input.Target{}) {
				return t
			}
		}
	}
	return input.Target{}
}

// targetOfFile returns that of an ELF file, or of the first in an archive. It is empty for
// what is neither.
func targetOfFile(file string) (target input.Target) {
	found := errors.New("found")
	input.Each(file, input.Options{FollowThin: true}, func(src *input.Source) error {
		t, _, ok := src.Ident()
		if !ok {
			return nil
		}
		target = t
		return found
	})
	return target
}

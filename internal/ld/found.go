package ld

import (
	"errors"
	"sync"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/filetype"
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
// linkers do.
func fitting(ln *line.Line, files []string, target func() input.Target) string {
	if len(files) > 0 && ln.Rules.TakesFirst {
		return files[0]
	}
	unknown := input.Target{}
	for _, file := range files {
		if t := targetOfFile(ln, file); t == unknown || target() == unknown || t == target() {
			return file
		}
	}
	return ""
}

// targetOf returns that of the first input which says what it is for.
func targetOf(ln *line.Line) input.Target {
	for i := range ln.Args {
		if arg := &ln.Args[i]; arg.Kind == line.Input && !arg.Foreign {
			if t := targetOfFile(ln, ln.InDirectory(arg.Value)); t != (input.Target{}) {
				return t
			}
		}
	}
	return input.Target{}
}

// targetOfFile returns that of an ELF file, of the first in an archive, or of a script that says
// it. It is empty for others.
func targetOfFile(ln *line.Line, file string) (target input.Target) {
	found := errors.New("found")
	input.Each(file, input.Options{FollowThin: true}, func(src *input.Source) error {
		t, _, ok := src.Ident()
		if typ, err := src.Type(); !ok && err == nil && typ == filetype.Text && src.Member == nil {
			t, ok = targetOfScript(ln, src)
		}
		if !ok {
			return nil
		}
		target = t
		return found
	})
	return target
}

// targetOfScript returns that of the format which a script names. A linker passes over the
// script of a library with another, as over an object.
func targetOfScript(ln *line.Line, src *input.Source) (target input.Target, ok bool) {
	text, err := parseScript(ln.Rules.Dialect, src, src.Size, line.TopLevel)
	if err != nil || len(text.Formats) == 0 {
		return target, false
	}
	abi, ok := machines.OfFormat(text.Formats[0])
	return input.Target{Class: abi.Class, Data: abi.Data, Machine: abi.Machine}, ok
}

package ld

import (
	"debug/elf"
	"errors"
	"strings"
	"sync"

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
	text := make([]byte, min(src.Size, maxScript))
	if _, err := src.ReadAt(text, 0); err != nil {
		return target, false
	}
	names := ln.Rules.Dialect.ParseScript(string(text), line.TopLevel).Formats
	if len(names) == 0 {
		return target, false
	}
	target, ok = formats[strings.TrimSuffix(names[0], "-freebsd")]
	return target, ok
}

// formats are the names that OUTPUT_FORMAT has for targets.
var formats = map[string]input.Target{
	"elf32-bigarm":        {Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB, Machine: elf.EM_ARM},
	"elf32-i386":          {Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB, Machine: elf.EM_386},
	"elf32-littlearm":     {Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB, Machine: elf.EM_ARM},
	"elf32-powerpc":       {Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB, Machine: elf.EM_PPC},
	"elf32-s390":          {Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB, Machine: elf.EM_S390},
	"elf32-x86-64":        {Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB, Machine: elf.EM_X86_64},
	"elf64-bigaarch64":    {Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB, Machine: elf.EM_AARCH64},
	"elf64-littleaarch64": {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_AARCH64},
	"elf64-littleriscv":   {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_RISCV},
	"elf64-loongarch":     {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_LOONGARCH},
	"elf64-powerpc":       {Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB, Machine: elf.EM_PPC64},
	"elf64-powerpcle":     {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_PPC64},
	"elf64-s390":          {Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB, Machine: elf.EM_S390},
	"elf64-x86-64":        {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_X86_64},
}

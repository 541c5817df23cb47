package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/parallel"
)

// linkInput is a file that a linker reads.
type linkInput struct {
	path   string // as the linker is told, or finds it
	file   string // where it is
	script string // that names it, or "" if the line does
	typ    filetype.Type
	elf    elf.Type

	names  bool // it mentions stubs or probe objects
	probes bool // it mentions stubs
	late   input.LateCode
	text   *line.Script
	err    error
}

func (in *linkInput) isArchive() bool {
	return in.typ == filetype.Archive || in.typ == filetype.ThinArchive
}

// findInputs lists the files that the line names.
func (l *link) findInputs() {
	l.byArg = map[int]*linkInput{}
	l.known = map[string]*linkInput{}
	for i := range l.line.Args {
		arg := &l.line.Args[i]
		switch {
		case arg.Foreign:
		case arg.Kind == line.Input:
			l.byArg[i] = l.addInput(arg.Value, l.line.InFolder(arg.Value), "")
		case arg.Kind == line.Library:
			if file := l.choose(l.line.Candidates(arg)); file != "" {
				l.byArg[i] = l.addInput(file, file, "")
			}
		}
	}
}

func (l *link) addInput(path, file, script string) *linkInput {
	in := l.known[path]
	if in == nil {
		in = &linkInput{path: path, file: file, script: script}
		l.known[path] = in
		l.inputs = append(l.inputs, in)
	}
	return in
}

// scan looks at all inputs, and at those that scripts among them name.
func (l *link) scan() {
	for done := 0; done < len(l.inputs); {
		batch := l.inputs[done:]
		done = len(l.inputs)
		parallel.Each(len(batch), l.jobs, func(i int) { l.scanInput(batch[i]) })
		for _, in := range batch {
			if in.text == nil {
				continue
			}
			for _, name := range append(in.text.Inputs, in.text.Includes...) {
				if file := l.line.ScriptInput(in.file, name); file != "" {
					l.addInput(file, file, in.path)
				}
			}
		}
	}
}

// scanInput finds out whether a file is worth converting. What cannot be read is
// left to the linker, which knows how to complain.
func (l *link) scanInput(in *linkInput) {
	f, err := input.Open(in.file)
	if err != nil {
		return
	}
	defer f.Close()
	src := f.Source()
	in.typ, _ = src.Type()
	switch in.typ {
	case filetype.ELF:
		in.err = l.scanELF(in, src)
	case filetype.Archive, filetype.Bitcode:
		if in.typ == filetype.Bitcode {
			in.late.Compiler = input.LLVM
		}
		in.names, in.probes, in.err = l.scanNames(src.Mentions)
	case filetype.ThinArchive:
		in.err = l.scanThin(in, f)
	case filetype.Text:
		in.text, in.err = readScript(in.file, f)
	}
}

// scanNames looks for names of stubs only where any name is found.
func (l *link) scanNames(contain func([][]byte) (bool, error)) (names, probes bool, err error) {
	if names, err = contain(l.anyNames); err == nil && names {
		probes, err = contain(l.needles)
	}
	return names, probes, err
}

func (l *link) scanELF(in *linkInput, src *input.Source) error {
	if typ, sure := withoutNames(src.File, l.anyNames); sure {
		in.elf = typ
		return nil
	}
	o, err := elfreloc.Open(src, src.Size, in.file)
	if err == nil {
		if in.elf = o.Type; in.elf != elf.ET_REL {
			return nil
		}
		if in.late, err = input.FindLateCode(o, l.patch.Names); err == nil {
			in.names, in.probes, err = l.scanNames(o.NamesContain)
			in.probes = in.probes || in.late.Probes > 0
		}
	}
	if err != nil {
		// Nobody need read what holds no probe.
		if found, _ := src.Mentions(l.needles); !found {
			return nil
		}
	}
	return err
}

// scanThin looks into the files that a thin archive names.
func (l *link) scanThin(in *linkInput, f *input.File) error {
	lib, err := f.Archive(input.Options{FollowThin: true})
	if err != nil {
		return nil
	}
	err = lib.Each(func(src *input.Source) error {
		if src.Err() != nil {
			return nil
		}
		names, probes, err := l.scanNames(src.Mentions)
		in.names, in.probes = in.names || names, in.probes || probes
		return err
	})
	if err != nil && !in.probes {
		return nil
	}
	return err
}

// maxScript bounds what is read of a text, in bytes.
const maxScript = 16 << 20

func readScript(name string, f *input.File) (*line.Script, error) {
	text := make([]byte, min(f.Size(), maxScript))
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return line.ParseScript(string(text)), nil
}

// choose takes the first of several files that is for the machine of the link, as
// linkers do.
func (l *link) choose(files []string) string {
	if len(files) < 2 {
		files = append(files, "")
		return files[0]
	}
	if l.abi == nil {
		l.abi = []byte{}
		for i := range l.line.Args {
			if arg := &l.line.Args[i]; arg.Kind == line.Input && !arg.Foreign {
				if l.abi = abiOf(l.line.InFolder(arg.Value)); len(l.abi) > 0 {
					break
				}
			}
		}
	}
	for _, file := range files {
		if abi := abiOf(file); len(abi) == 0 || len(l.abi) == 0 || bytes.Equal(abi, l.abi) {
			return file
		}
	}
	return ""
}

// abiOf is what an ELF file, or the first in an archive, says of class, byte order
// and machine. It is empty for what says nothing of that.
func abiOf(file string) []byte {
	f, err := input.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var abi []byte
	found := errors.New("found")
	f.Each(input.Options{FollowThin: true}, func(src *input.Source) error {
		head := make([]byte, 20)
		if src.Err() != nil {
			return nil
		}
		if n, _ := src.ReadAt(head, 0); n < len(head) || string(head[:4]) != elf.ELFMAG {
			return nil
		}
		abi = append(head[elf.EI_CLASS:elf.EI_VERSION:elf.EI_VERSION], head[18:20]...)
		return found
	})
	return abi
}

// scriptsOf are those that flags name, and all that they include.
func (l *link) scriptsOf() ([]*linkInput, error) {
	var all []*linkInput
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		file := l.line.ScriptInput(name, name)
		if file == "" || seen[file] {
			return nil
		}
		seen[file] = true
		f, err := input.Open(file)
		if err != nil {
			return nil
		}
		defer f.Close()
		text, err := readScript(file, f)
		if err != nil {
			return err
		}
		all = append(all, &linkInput{path: name, file: file, text: text})
		for _, name := range text.Includes {
			if err := add(name); err != nil {
				return err
			}
		}
		return nil
	}
	for _, name := range l.line.Scripts {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

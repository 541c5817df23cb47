package ld

import (
	"debug/elf"
	"fmt"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/parallel"
	"sdtconvert/patch"
)

// linkInput is a file that a linker reads, and what is in it. Nothing of it changes.
type linkInput struct {
	named
	typ filetype.Type
	elf elf.Type

	names  bool // it mentions stubs or probe objects
	probes bool // it mentions stubs
	late   input.LateCode
	text   *script // of a linker script, else nil
	err    error   // that keeps it from being converted, though it holds probes
}

func (in *linkInput) isArchive() bool {
	return in.typ == filetype.Archive || in.typ == filetype.ThinArchive
}

// isLate reports whether it is an object without code, of a compiler.
func (in *linkInput) isLate(compiler input.Compiler) bool {
	return in.late.Compiler == compiler && (in.typ == filetype.Bitcode || in.elf == elf.ET_REL)
}

// scanned are the inputs of a link.
type scanned struct {
	inputs []*linkInput       // each once, those of the line first
	byArg  map[int]*linkInput // by the argument of the line
}

// scanner looks at files.
type scanner struct {
	line    *line.Line
	stubs   patch.Names
	needles [][]byte // without which a file has no stub
	any     [][]byte // and without which it has to do with no probe
	jobs    int
	reader  scriptReader
	static  map[string]bool // scripts whose -l are archives, by path
}

func newScanner(reader scriptReader, o patch.Options, jobs int) *scanner {
	return &scanner{reader: reader, static: map[string]bool{}, line: reader.line, stubs: o.Names, needles: o.Names.Needles(), any: anyNames(o), jobs: jobs}
}

// anyNames returns the beginnings of the names of stubs and of probe objects.
func anyNames(o patch.Options) [][]byte { return append(o.Names.Needles(), []byte(o.ProbePrefix)) }

// all looks at the files of a line and then at others, and behind either at those that
// scripts among them name.
func (s *scanner) all(files found, more []named) scanned {
	result := scanned{byArg: map[int]*linkInput{}}
	known := map[string]*linkInput{}
	for i, path := range files.byArg {
		s.static[path] = s.static[path] || s.line.Args[i].Static
	}
	for _, batch := range [][]named{files.files, more} {
		for len(batch) > 0 {
			var inputs []*linkInput
			for _, file := range batch {
				if known[file.path] == nil {
					known[file.path] = &linkInput{named: file}
					inputs = append(inputs, known[file.path])
				}
			}
			parallel.Each(len(inputs), s.jobs, func(i int) { *inputs[i] = *s.input(inputs[i].named) })
			result.inputs = append(result.inputs, inputs...)
			batch = s.included(inputs)
		}
	}
	for i, path := range files.byArg {
		result.byArg[i] = known[path]
	}
	return result
}

// included returns the files that scripts among inputs name.
func (s *scanner) included(inputs []*linkInput) (files []named) {
	for _, in := range inputs {
		if in.text == nil {
			continue
		}
		for _, file := range s.reader.scripted(in.text) {
			s.static[file.path] = s.static[file.path] || in.text.place.Static
			files = append(files, file)
		}
	}
	return files
}

// input finds out whether a file is worth converting. What cannot be read is left to
// the linker, which knows how to complain.
func (s *scanner) input(file named) *linkInput {
	in := &linkInput{named: file}
	f, err := input.Open(file.file)
	if err != nil {
		return in
	}
	defer f.Close()
	src := f.Source()
	in.typ, _ = src.Type()
	switch in.typ {
	case filetype.ELF:
		in.err = s.object(in, src)
	case filetype.Archive, filetype.Bitcode:
		if in.typ == filetype.Bitcode {
			in.late.Compiler = input.LLVM
		}
		in.names, in.probes, in.err = s.mentions(src.Mentions)
	case filetype.ThinArchive:
		in.err = s.thin(in, f)
	case filetype.Text:
		in.text, in.err = s.reader.tree(f, in.path, s.reader.dialect.Place(in.path, false, s.static[in.path]))
	}
	return in
}

// mentions looks for names of stubs only where any name is found.
func (s *scanner) mentions(contain func([][]byte) (bool, error)) (names, probes bool, err error) {
	if names, err = contain(s.any); err == nil && names {
		probes, err = contain(s.needles)
	}
	return names, probes, err
}

// object looks at the names of an object. What was linked is not looked into.
func (s *scanner) object(in *linkInput, src *input.Source) error {
	if _, typ, ok := src.Ident(); ok && typ == elf.ET_DYN {
		in.elf = typ
		return nil
	}
	o, err := src.Image()
	if err == nil {
		if in.elf = o.Type; in.elf != elf.ET_REL {
			return nil
		}
		if in.late, err = input.FindLateCode(o.Object, s.stubs); err == nil {
			in.names, in.probes, err = s.mentions(o.NamesContain)
			in.probes = in.probes || in.late.Probes > 0
		}
	}
	if err != nil {
		// What holds no probe need not be readable.
		if found, _ := src.Mentions(s.needles); !found {
			return nil
		}
	}
	return err
}

// thin looks into the files that a thin archive names.
func (s *scanner) thin(in *linkInput, f *input.File) error {
	lib, err := f.Archive(input.Options{FollowThin: true})
	if err != nil {
		return nil
	}
	nested := false
	err = lib.Each(func(src *input.Source) error {
		nested = nested || src.Inner != nil
		if src.Err() != nil {
			return nil
		}
		names, probes, err := s.mentions(src.Mentions)
		in.names, in.probes = in.names || names, in.probes || probes
		return err
	})
	switch {
	case nested && s.line.Rules.NestedThin == line.RefusesNested:
		in.names, in.probes = false, false // the linker says why
	case nested && in.probes && s.line.Rules.NestedThin == line.IgnoresNested:
		return fmt.Errorf("%s: has members of other archives, which this linker leaves out of the link; name those archives on the line", in.path)
	}
	if !in.probes {
		return nil
	}
	return err
}

package ld

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/parallel"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// linkInput is a file that a linker reads, and what is in it. Nothing of it changes.
type linkInput struct {
	named
	info fs.FileInfo // nil if the file cannot be opened
	typ  filetype.Type
	elf  elf.Type

	kernelTracepoints bool // it was compiled with the header of FreeBSD's kernel

	names  bool         // it mentions stubs or probe objects
	probes bool         // it mentions stubs
	target patch.Target // of the objects with names
	late   input.LateCode
	part   *part   // of what is not converted, where the scan has read it; else nil
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
	linker  linker
	options patch.Options
	needles [][]byte // without which a file has no stub
	any     [][]byte // and without which it has to do with no probe
	jobs    int
	reader  scriptReader
	states  map[string]line.State // how scripts are read, by path
	known   map[string]bool       // scripts whose directories are in the line's, by path
}

func newScanner(l linker, reader scriptReader, o patch.Options, jobs int) *scanner {
	return &scanner{linker: l, reader: reader, states: map[string]line.State{}, known: map[string]bool{}, line: reader.line, options: o, needles: o.Names.Needles(), any: anyNames(o), jobs: jobs}
}

// anyNames returns the beginnings of the names of stubs and of probe objects.
func anyNames(o patch.Options) [][]byte { return append(o.Names.Needles(), []byte(o.ProbePrefix)) }

// whole looks at the files of a line and of its scripts: again, if a script among them has
// libraries searched in more directories.
func (s *scanner) whole(flags []*script) scanned {
	for {
		var more []named
		for _, text := range flags {
			for _, file := range s.reader.scripted(text) {
				s.read(file.path, text.place.State)
				more = append(more, file)
			}
		}
		inputs := s.all(findFiles(s.line), more)
		if !s.searchMore(inputs.inputs) {
			return inputs
		}
	}
}

// searchMore takes in the directories of scripts, and reports whether there are more now.
func (s *scanner) searchMore(inputs []*linkInput) (more bool) {
	for _, in := range inputs {
		if in.text == nil || s.known[in.path] {
			continue
		}
		s.known[in.path] = true
		in.text.each(func(included *script) {
			more = s.line.SearchIn(included.text.Directories, in.text.place.At, false) || more
		})
	}
	return more
}

// all looks at the files of a line and then at others, and behind either at those that
// scripts among them name.
func (s *scanner) all(files found, more []named) scanned {
	result := scanned{byArg: make(map[int]*linkInput, len(files.byArg))}
	known := make(map[string]*linkInput, len(files.files))
	for i, path := range files.byArg {
		s.read(path, s.line.Args[i].State)
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
			parallel.Each((len(inputs)+neighbours-1)/neighbours, s.jobs, func(i int) {
				s.neighbours(inputs[i*neighbours : min((i+1)*neighbours, len(inputs))])
			})
			result.inputs = append(result.inputs, inputs...)
			batch = s.included(inputs)
		}
	}
	for i, path := range files.byArg {
		result.byArg[i] = known[path]
	}
	return result
}

// read notes how a script is read that an argument leads to. Several arguments may lead to one.
func (s *scanner) read(path string, state line.State) {
	was := s.states[path]
	s.states[path] = line.State{Static: was.Static || state.Static, At: max(was.At, state.At)}
}

// neighbours is how many inputs share a part.
const neighbours = 16

// neighbours looks at files that follow each other on the line. Their parts stay in the
// order of the line: what is behind a file that is not read here has another.
func (s *scanner) neighbours(inputs []*linkInput) {
	p := s.newPart()
	for _, in := range inputs {
		s.scan(in, p)
		if in.names && in.part == nil {
			p = s.newPart()
		}
	}
}

// newPart returns the part of no files yet, or nil for a link that asks for none.
func (s *scanner) newPart() *part {
	if s.line.Relocatable {
		return nil
	}
	return newPart(s.options)
}

// included returns the files that scripts among inputs name.
func (s *scanner) included(inputs []*linkInput) (files []named) {
	for _, in := range inputs {
		if in.text == nil {
			continue
		}
		for _, file := range s.reader.scripted(in.text) {
			s.read(file.path, in.text.place.State)
			files = append(files, file)
		}
	}
	return files
}

// input looks at a single file.
func (s *scanner) input(file named) *linkInput {
	in := &linkInput{named: file}
	s.scan(in, nil)
	return in
}

// scan finds out whether a file is worth converting. What cannot be read is left to
// the linker, which knows how to complain. An object that needs no conversion is added to p,
// unless that is nil.
func (s *scanner) scan(in *linkInput, p *part) {
	f, err := input.Open(in.file)
	if err != nil {
		return
	}
	defer f.Close()
	in.info = f.Info
	src := f.Source()
	in.typ, _ = src.Type()
	switch in.typ {
	case filetype.ELF:
		in.err = s.object(in, src, p)
	case filetype.Archive:
		in.err = s.archive(in, f)
	case filetype.Bitcode:
		in.late.Compiler = input.LLVM
		in.names, in.probes, in.err = s.mentions(src.Mentions)
	case filetype.ThinArchive:
		in.err = s.thin(in, f)
	case filetype.Text, filetype.Unknown: // a script may be in any encoding
		in.text, in.err = s.reader.tree(f, in.path, s.reader.dialect.Place(in.path, false, s.states[in.path]))
	}
}

// mentions looks for names of stubs only where any name is found.
func (s *scanner) mentions(contain func([][]byte) (bool, error)) (names, probes bool, err error) {
	if names, err = contain(s.any); err == nil && names {
		probes, err = contain(s.needles)
	}
	return names, probes, err
}

// symbols looks for the names of an object. The name of a stub may be a part of others, as
// it is of the probe object's: only a symbol that has it makes the object one to convert.
func (s *scanner) symbols(o *elfreloc.Object) (names, probes bool, err error) {
	if names, probes, err = s.mentions(o.NamesContain); err == nil && probes {
		probes, err = s.options.Names.HasStub(o)
	}
	return names || s.hasRecords(o), probes, err
}

// hasRecords reports whether an object was converted. Its probe objects may have names with
// another prefix, which the link then refuses.
func (s *scanner) hasRecords(o *elfreloc.Object) bool {
	return slices.ContainsFunc(o.Sections, func(sec elfreloc.Section) bool {
		_, ok := s.options.Layout.IsRecordSection(&sec)
		return ok
	})
}

// object looks at the names of an object. What was linked is not looked into.
func (s *scanner) object(in *linkInput, src *input.Source, p *part) error {
	if _, typ, ok := src.Ident(); ok && typ == elf.ET_DYN {
		in.elf = typ
		return nil
	}
	o, err := src.Image()
	if err == nil {
		if in.elf = o.Type; in.elf != elf.ET_REL {
			return nil
		}
		if in.late, err = s.lateCode(o.Object); err == nil {
			in.names, in.probes, err = s.symbols(o.Object)
			if in.names {
				in.noteTarget(o.Object)
			}
			in.probes = in.probes || in.late.Probes > 0
		}
		isFreeBSD := s.options.Layout.Format == linkerset.FreeBSD || s.options.AutoLayout && o.OSABI() == elf.ELFOSABI_FREEBSD
		if err == nil && isFreeBSD {
			in.kernelTracepoints, err = input.HasKernelTracepoints(o.Object)
		}
	}
	if err != nil {
		// What holds no probe need not be readable.
		if found, _ := src.Mentions(s.needles); !found {
			return nil
		}
		return err
	}
	if p != nil && in.names && !in.probes {
		in.part = p
		p.err = errors.Join(p.err, p.add(s.options, o, &patch.Scan{}))
	}
	return nil
}

// lateCode finds the intermediate code of an object that the linker takes instead of its machine
// code.
func (s *scanner) lateCode(o *elfreloc.Object) (input.LateCode, error) {
	late, err := input.FindLateCode(o, s.options.Names)
	if late.Fat && err == nil && !takesIntermediate(s.line, s.linker, late.Compiler) {
		return input.LateCode{}, nil
	}
	return late, err
}

// noteTarget notes what an object is made for.
func (in *linkInput) noteTarget(o *elfreloc.Object) { in.target = max(in.target, patch.TargetOf(o)) }

// target returns what a link is made for: the kernel, if an object is, since not all objects of
// kernels show it.
func (s *scanned) target() (t patch.Target) {
	for _, in := range s.inputs {
		t = max(t, in.target)
	}
	return t
}

// lateMember is the error of a member of an archive whose intermediate code holds probes.
type lateMember struct{ error }

// archive looks at the members of an archive, until one is found to have probes.
func (s *scanner) archive(in *linkInput, f *input.File) error {
	p := s.newPart()
	lib, err := f.Archive(input.Options{})
	if err == nil {
		err = lib.Each(func(src *input.Source) error {
			names, probes, err := s.member(in, src, p)
			in.names, in.probes = in.names || names, in.probes || probes
			if err == nil && probes && !hasPlugin(s.line) { // which may take the intermediate code of a later member
				err = errProbes
			}
			return err
		})
	}
	switch {
	case err == errProbes:
		return nil
	case errors.As(err, new(*lateMember)):
		return err
	case err == nil:
		if in.names && !in.probes {
			in.part = p // of an archive with probes, the conversion knows more
		}
		return nil
	}
	// A linker may read what this program does not.
	in.names, in.probes, err = s.mentions(f.Source().Mentions)
	return err
}

// errProbes ends the search of an archive that has probes.
var errProbes = errors.New("has probes")

// member looks at the names of a member of an archive, and adds what needs no conversion to
// p unless that is nil. If it is no object that can be read, names may be anywhere in it.
func (s *scanner) member(in *linkInput, src *input.Source, p *part) (names, probes bool, err error) {
	names, probes, err = s.memberObject(in, src, p)
	if err != nil && !errors.As(err, new(*lateMember)) {
		return s.mentions(src.Mentions)
	}
	return names, probes, err
}

// memberObject is member for an object. It fails if that cannot be read.
func (s *scanner) memberObject(in *linkInput, src *input.Source, p *part) (names, probes bool, err error) {
	o, err := src.Image()
	if err != nil {
		return false, false, err
	}
	late, err := s.lateCode(o.Object)
	if err != nil {
		return false, false, err
	}
	switch {
	case late.Probes > 0:
		return true, true, &lateMember{o.SectionError(late.Probes, fmt.Errorf("%s, which this linker takes from archives; link or compile with -fno-lto", late.Compiler.HoldsProbes()))}
	case late.Compiler != "":
		names, probes, err = s.mentions(src.Mentions)
	case o.Type == elf.ET_REL:
		if names, probes, err = s.symbols(o.Object); names {
			in.noteTarget(o.Object)
		}
	default:
		names, probes, err = s.mentions(o.NamesContain)
	}
	if err == nil && p != nil && p.err == nil && names && !probes && o.Type == elf.ET_REL {
		p.err = p.add(s.options, o, &patch.Scan{})
	}
	return names, probes, err
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
		names, probes, err := s.member(in, src, nil)
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

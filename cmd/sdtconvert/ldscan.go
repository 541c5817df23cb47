package main

import (
	"debug/elf"
	"errors"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/replace"
)

// linkInput is a file that a linker is given.
type linkInput struct {
	path   string // as the linker is told, or finds it
	file   string // where it is
	typ    filetype.Type
	elf    elf.Type
	probes bool // it mentions stubs
	err    error
}

var notYet = map[filetype.Type]error{
	filetype.Bitcode:     errors.New("is LLVM bitcode that holds probes; " + adviceLLVM),
	filetype.Archive:     errors.New(explanations[filetype.Archive]),
	filetype.ThinArchive: errors.New(explanations[filetype.ThinArchive]),
}

// scanInput finds out whether a file is worth converting. What cannot be read is
// left to the linker, which knows how to complain.
func (l *link) scanInput(in *linkInput) {
	f, err := replace.Open(in.file)
	if err != nil {
		return
	}
	defer f.Close()
	size := f.Info.Size()
	if size <= smallFile {
		if err := f.Load(); err != nil {
			in.err = err
			return
		}
	}
	head := make([]byte, min(size, filetype.HeadSize))
	if n, err := f.ReadAt(head, 0); n < len(head) {
		in.err = err
		return
	}
	in.typ = filetype.Recognise(head)
	switch in.typ {
	case filetype.ELF:
		in.err = l.scanELF(in, f)
	case filetype.Bitcode, filetype.Archive, filetype.ThinArchive:
		found, err := elfreloc.StreamContains(f, 0, size, l.needles)
		if err == nil && found {
			err = notYet[in.typ]
		}
		if err != nil {
			in.err = fmt.Errorf("%s: %w", in.file, err)
		}
	}
}

func (l *link) scanELF(in *linkInput, f *replace.Input) error {
	o, err := elfreloc.Open(f, f.Info.Size(), in.file)
	if err == nil {
		in.elf = o.Type
		if o.Type != elf.ET_REL {
			return nil
		}
		if err = checkLTO(o, l.patch.Names); err != nil {
			return err
		}
		in.probes, err = o.NamesContain(l.needles)
	}
	if err != nil {
		// Nobody need read what holds no probe.
		if found, _ := elfreloc.StreamContains(f, 0, f.Info.Size(), l.needles); !found {
			return nil
		}
	}
	return err
}

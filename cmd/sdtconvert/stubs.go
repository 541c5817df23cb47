package main

import (
	"debug/elf"

	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/input"
	"sdtconvert/patch"
)

// makeStubs is the command that writes what a link still needs.
func (p *program) stubs(args []string) (bool, error) {
	g := generatorFlags("stubs")
	g.StringVar(&g.patch.ReturnThunk, "return-thunk", "", "")
	g.Lookup("return-thunk").NoOptDefVal = "__x86_return_thunk"
	if err := g.parse(args); err != nil {
		return false, err
	}
	if g.output == "" && !g.asm {
		return false, usagef("-o says where the object goes, and is missing; --asm writes assembly to standard output")
	}
	need := stubs.New(stubs.Options{
		Names: g.patch.Names, ProbePrefix: g.patch.ProbePrefix, Thunk: g.patch.ReturnThunk, Layouts: g.patch.Layout.Candidates(),
	})
	failed := g.each(p.Stderr, openDefiner, func(s *input.Object) error {
		if g.isOutput(s.Source) {
			if made, err := stubs.Made(s.Object); err != nil || made {
				return err
			}
			return errIsOutput(s)
		}
		return need.Add(s.Object, s.Machine)
	})
	if failed {
		return true, nil
	}
	write := need.Object
	if g.asm {
		write = need.Source
	}
	data, err := write()
	if err != nil {
		return false, err
	}
	return false, p.put(g, data)
}

// openDefiner is openSubject, but takes shared libraries too: what they define
// need not be defined again.
func openDefiner(src *input.Source, names patch.Names) (*input.Object, error) {
	s, err := src.ELF(names)
	if err == nil && (s.Type != elf.ET_DYN || src.Member != nil) {
		return src.Relocatable(names)
	}
	return s, err
}

package main

import (
	"debug/elf"
	"io"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/emit/stubs"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// makeStubs is the command that writes what a link still needs.
func makeStubs(args []string, stdout, stderr io.Writer) (bool, error) {
	g := generatorFlags("stubs")
	g.StringVar(&g.patch.ReturnThunk, "return-thunk", "", "")
	g.Lookup("return-thunk").NoOptDefVal = machines.ReturnThunk()
	if err := g.parse(args); err != nil {
		return false, err
	}
	if g.output == "" && !g.asm {
		return false, usagef("-o says where the object goes, and is missing; --asm writes assembly to standard output")
	}
	need := stubs.New(stubs.Options{
		Names: g.patch.Names, ProbePrefix: g.patch.ProbePrefix, Thunk: g.patch.ReturnThunk, Layouts: recordLayouts(g.patch.Layout),
	})
	failed := g.each(stderr, openDefiner, func(s *subject) error {
		if g.isOutput(s.src) {
			if made, err := stubs.Made(s.Object); err != nil || made {
				return err
			}
			return errIsOutput(s)
		}
		return need.Add(s.Object, s.machine)
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
	return false, g.put(data, stdout)
}

// openDefiner is openSubject, but takes shared libraries too: what they define
// need not be defined again.
func openDefiner(src *source, names patch.Names) (*subject, error) {
	s, err := openELF(src, names)
	if err == nil && (s.Type != elf.ET_DYN || src.member != nil) {
		return openSubject(src, names)
	}
	return s, err
}

// recordLayouts are those that records may have: all with the names asked for,
// and all that conversions make when they are not told otherwise.
func recordLayouts(l linkerset.Layout) []linkerset.Layout {
	layouts := l.All()
	if l.Name != "" {
		layouts = append(layouts, linkerset.Layout{}.All()...)
	}
	return layouts
}

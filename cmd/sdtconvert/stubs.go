package main

import (
	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/input"
)

// stubs is the command that writes what a link still needs.
func (p *program) stubs(args []string) (bool, error) {
	g := generatorFlags("stubs")
	g.defineReturnThunk()
	if err := g.parse(args); err != nil {
		return false, err
	}
	if g.output == "" && !g.asm {
		return false, usagef("-o says where the object goes, and is missing; --asm writes assembly to standard output")
	}
	need := stubs.New(stubs.Options{
		Names: g.patch.Names, ProbePrefix: g.patch.ProbePrefix, Thunk: g.patch.ReturnThunk, Layouts: g.patch.Layout.Candidates(),
	})
	failed := p.eachObject(g, true, func(o *input.Object) error {
		if g.isOutput(o.Source) {
			if made, err := stubs.Made(o.Object); err != nil || made {
				return err
			}
			return errIsOutput(o)
		}
		return need.Add(o.Object, o.Machine)
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

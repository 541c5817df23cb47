package main

import (
	"errors"

	"sdtconvert/internal/emit/records"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
)

// sites is the command that writes the records of objects as assembly, and leaves the
// objects alone.
func (p *program) sites(args []string) (bool, error) {
	g := generatorFlags("sites")
	g.StringVar(&g.layout, "layout", linkerset.Pairs.String(), "")
	if err := g.parse(args); err != nil {
		return false, err
	}
	if !g.asm {
		return false, usagef("sites can only be written as assembly; give --asm")
	}
	list := records.New(g.patch)
	failed := p.eachObject(g, false, func(o *input.Object) error {
		if g.isOutput(o.Source) {
			return errIsOutput(o)
		}
		return list.Add(o.Object, o.Machine)
	})
	if failed {
		return true, nil
	}
	data, errs := list.Source()
	if len(errs) > 0 {
		message.Error(p.Stderr, errors.Join(errs...))
		return true, nil
	}
	return false, p.put(g, data)
}

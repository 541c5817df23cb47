package main

import (
	"errors"

	"sdtconvert/internal/emit/records"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// listSites is the command that writes the records of objects as assembly, and
// leaves the objects alone.
func (p *program) sites(args []string) (bool, error) {
	g := generatorFlags("sites")
	g.StringVar(&g.layout, "layout", linkerset.Pairs.String(), "")
	if err := g.parse(args); err != nil {
		return false, err
	}
	if !g.asm {
		return false, usagef("sites can only be written as assembly; give --asm")
	}
	list := records.New(g.patch.Layout, g.patch.ProbePrefix)
	failed := g.each(p.Stderr, (*input.Source).Relocatable, func(s *input.Object) error {
		if g.isOutput(s.Source) {
			return errIsOutput(s)
		}
		return g.addSites(list, s)
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

// addSites adds an object to a list if all its sites could be converted: what
// cannot be switched off cannot be switched on either.
func (g *generator) addSites(list *records.List, s *input.Object) error {
	mentioned, err := s.MentionsStub(g.patch.Names)
	if err != nil || !mentioned {
		if err == nil {
			err = list.Add(s.Object, s.Machine, nil)
		}
		return err
	}
	scan, err := patch.Find(s.Object, s.Machine, g.patch.Names)
	if err != nil {
		return err
	}
	plan, err := patch.NewPlan(scan, g.patch)
	if err != nil {
		return err
	}
	if errs := plan.Err(); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return list.Add(s.Object, s.Machine, plan)
}

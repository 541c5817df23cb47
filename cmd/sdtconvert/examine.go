package main

import (
	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// examine plans the conversion of an object that mentions a stub.
func examine(s *input.Object, opts patch.Options) (*patch.Plan, error) {
	scan, err := patch.Find(s.Object, s.Machine, opts.Names)
	if err != nil {
		return nil, err
	}
	plan, err := patch.NewPlan(scan, opts)
	if err != nil {
		return nil, err
	}
	return plan, plan.CheckEarlier()
}

// earlier reads the records of an earlier conversion.
func earlier(s *input.Object, layouts []linkerset.Layout) ([]linkerset.Entry, error) {
	if s.Machine == nil {
		return nil, nil
	}
	im, err := image.Open(s.Object, s.Machine)
	if err != nil {
		return nil, err
	}
	var all []linkerset.Entry
	for _, l := range layouts {
		entries, faults, err := l.Read(im)
		if err != nil {
			return nil, err
		}
		if len(faults) > 0 {
			return nil, faults[0]
		}
		all = append(all, entries...)
	}
	linkerset.Sort(all)
	return all, nil
}

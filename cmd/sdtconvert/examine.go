package main

import (
	"sdtconvert/image"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// mentionsStub reports whether some name in an object is that of a stub. An
// object without one is not looked at any further.
func mentionsStub(s *subject, names patch.Names) (bool, error) {
	found, err := s.NamesContain(names.Needles())
	if err != nil || !found {
		return false, err
	}
	return true, s.src.load()
}

// examine plans the conversion of an object that mentions a stub.
func examine(s *subject, opts patch.Options) (*patch.Plan, error) {
	scan, err := patch.Find(s.Object, s.machine, opts.Names)
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
func earlier(s *subject, layouts []linkerset.Layout) ([]linkerset.Entry, error) {
	if s.machine == nil {
		return nil, nil
	}
	im, err := image.Open(s.Object, s.machine)
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

package main

import (
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// examine plans the conversion of an object. The plan is nil when the object
// has no probe: then it is not looked at any further than its names.
func examine(s *subject, opts patch.Options) (*patch.Plan, error) {
	scan, err := find(s, opts.Names)
	if err != nil {
		return nil, err
	}
	if scan == nil {
		_, err := opts.Layout.Earlier(s.Object, s.machine)
		return nil, err
	}
	plan, err := patch.NewPlan(scan, opts)
	if err != nil {
		return nil, err
	}
	_, err = plan.CheckEarlier()
	return plan, err
}

// find looks for stubs and their calls. The scan is nil when no name is that of
// a stub.
func find(s *subject, names patch.Names) (*patch.Scan, error) {
	found, err := s.NamesContain(names.Needles())
	if err != nil || !found {
		return nil, err
	}
	if err := s.in.Load(); err != nil {
		return nil, err
	}
	return patch.Find(s.Object, s.machine, names)
}

// earlier reads the records of an earlier conversion.
func earlier(s *subject, layouts []linkerset.Layout) ([]linkerset.Entry, error) {
	var all []linkerset.Entry
	if s.machine == nil {
		return nil, nil
	}
	for _, l := range layouts {
		entries, err := l.Read(s.Object, s.machine)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	linkerset.Sort(all)
	return all, nil
}

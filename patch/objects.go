package patch

// Where probe objects are is told to others too: records that stand in another object
// name them.

// ProbeObjects tells where the probe objects of an object's stubs are, for those
// who do not convert it.
type ProbeObjects struct{ f *probeFinder }

// ProbeObjects finds the probe objects whose names are prefix and a probe's id.
func (s *Scan) ProbeObjects(prefix string) (ProbeObjects, error) {
	f, err := newProbeFinder(&Plan{Scan: s, Options: Options{ProbePrefix: prefix}}, nil)
	return ProbeObjects{f}, err
}

// Name is the name that the probe object of one of the scan's stubs has, wherever it
// is.
func (p ProbeObjects) Name(s *Stub) string { return p.f.name(s) }

// Local reports whether records of a stub's sites name probe objects that are local
// symbols of the object itself, and none of that name elsewhere.
func (p ProbeObjects) Local(s *Stub) bool { return len(p.f.locals[p.f.name(s)]) > 0 }

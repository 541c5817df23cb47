package check

import (
	"debug/elf"
	"errors"
	"slices"

	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/patch"
)

// ErrNotELF says that a file does not show its tracepoints.
var ErrNotELF = errors.New("it is not ELF (--oformat), which shows no tracepoints")

// UnconvertedFile returns the tracepoints of a file, as Unconverted does, or ErrNotELF.
func UnconvertedFile(path string, names patch.Names) ([]Finding, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src := f.Source()
	if _, _, isELF := src.Ident(); !isELF {
		return nil, ErrNotELF
	}
	return Unconverted(src, names)
}

// ProbesOf returns the probes of findings, sorted.
func ProbesOf(findings []Finding) (probes []string) {
	for _, f := range findings {
		if f.Probe != "" {
			probes = append(probes, f.Probe)
		}
	}
	slices.Sort(probes)
	return slices.Compact(probes)
}

// Unconverted returns the tracepoints of a linked file, or an object, that are left as they were compiled:
// calls of stubs, and marked NOPs. A file that is not ELF has none, nor has one of intermediate code, which a
// later link converts.
func Unconverted(src *input.Source, names patch.Names) ([]Finding, error) {
	s := New(Options{Conventions: sites.Conventions{Names: names}, Warn: func(error) {}, Failed: func(error) {}})
	if _, _, isELF := src.Ident(); !isELF {
		return nil, nil
	}
	o, err := src.Image()
	if err != nil || o.Machine == nil {
		return nil, err
	}
	if code, err := lto.Find(o.Object, names.StubTexts()); err != nil || code.Compiler != "" {
		return nil, err
	}
	c := &fileChecker{Object: o, set: s}
	if c.code, err = locate.NewCode(o, locate.Options{Warn: s.opts.Warn}); err != nil {
		return nil, err
	}
	defer c.code.Close()
	c.openSpace()
	c.begin()
	if c.unconverted(); c.err == nil {
		c.linkedStubs()
	}
	return s.findings, c.err
}

// WrongBases returns the findings of a linked file whose notes have wrong addresses, because a link has kept several of what it is to
// have one of.
func WrongBases(path string) ([]Finding, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src := f.Source()
	if _, typ, isELF := src.Ident(); !isELF || typ == elf.ET_REL {
		return nil, nil
	}
	o, err := src.Image()
	if err != nil || o.Machine == nil {
		return nil, err
	}
	s := New(Options{Warn: func(error) {}, Failed: func(error) {}})
	im, err := image.Open(o.Object, o.Machine)
	if err != nil {
		return nil, err
	}
	siteNotes, _, err := notes.Read(o.Object, im)
	(&fileChecker{Object: o, set: s}).wrongBases(siteNotes)
	return s.findings, err
}

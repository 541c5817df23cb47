// Package check finds out what is wrong with the probes of a build: of objects,
// before they are linked, of what was linked of them, and of what one says of
// the other.
//
// All relocatable objects of a set and one machine are taken for the objects of
// one link. What that link may lack or have twice is decided when all are known;
// images are checked one by one, but what they export counts for all.
//
// docs/check.md has each rule's cause and cure.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/sites"
)

// Finding is one thing that a rule has found.
type Finding struct {
	Rule *Rule
	File string // as it was given

	// Where it is. Place is "" when the finding is of the whole file.
	Place   string // section+offset, or an address
	Section string // of an object; "" in an image
	Address uint64 // in an image; in an object the offset in Section

	Function       string // as the source has it, "" when there is none
	Symbol         string // the symbol, where its name differs from Function
	FunctionOffset uint64
	Unsized        bool   // as in resolve.Function
	Source         string // the path of the source file, as the compiler has it
	Line           int    // 0 when not known

	Probe   string // the id, or else provider:::name; "" when it is of no probe
	Message string

	file int // in the order of the set
	at   image.Addr
}

// Where shows the function of a finding, as symbol+offset; "" when there is none.
func (f *Finding) Where() string {
	symbol := cmp.Or(f.Symbol, f.Function)
	if symbol == "" {
		return ""
	}
	where := fmt.Sprintf("%s+%#x", symbol, f.FunctionOffset)
	if f.Unsized {
		where += " (no size)"
	}
	return where
}

// Options say what probes are called, and what has to be there.
type Options struct {
	sites.Conventions
	Require []Requirement
	Only    []Requirement // if there are any, no site has another probe
	// RequireNotes says that each recorded site of a probe call has to have a note.
	RequireNotes bool
	Allow        []string // names of rules that are not applied
	FollowThin   bool     // files outside of the directory of a thin archive

	// Warn is called with each fault of debug information and each empty archive, and Failed with each error that keeps a
	// file from being checked, as soon as they are found. Both are required.
	Warn, Failed func(error)
}

// Probe is the name of a probe, as listings show it.
type Probe struct{ Provider, Module, Function, Name string }

// Set is the files of one run.
type Set struct {
	opts       Options
	files      []string // names
	findings   []Finding
	links      map[abi]*link
	sites      []probeSite // of all files
	checked    []string    // files without an error, in their order
	errors     []error
	incomplete bool // a file could not be checked, or only in part
	lostNotes  bool // an image has lost its notes, and with them sites that have no records
}

// abi is what files have in common that may be linked with each other.
type abi struct {
	machine arch.Machine
	layout  elfreloc.Encoding
}

// New makes a set without files.
func New(opts Options) *Set { return &Set{opts: opts, links: map[abi]*link{}} }

// Add checks a file, or all members of an archive. If one cannot be checked, the set has an error and is
// incomplete, and the others are checked.
func (s *Set) Add(path string) {
	isEmpty := true
	if err := input.Each(path, input.Options{FollowThin: s.opts.FollowThin, Unpack: true}, func(src *input.Source) error {
		isEmpty = false
		if err := s.source(src); err != nil {
			s.fail(err)
		}
		return nil
	}); err != nil {
		s.fail(err)
	} else if isEmpty {
		s.opts.Warn(fmt.Errorf("%s: is an archive without members, so nothing of it was checked", path))
	}
}

func (s *Set) fail(err error) {
	s.incomplete = true
	s.errors = append(s.errors, err)
	s.opts.Failed(err)
}

// source checks a file or a member of an archive of any type.
func (s *Set) source(src *input.Source) error {
	o, err := src.ELF(s.opts.Names.StubTexts())
	if err == nil {
		err = lto.Check(o.Object, s.opts.Names.StubTexts())
	}
	var late *lto.Error
	switch {
	case errors.As(err, &late):
		s.files = append(s.files, src.Name)
		s.findings = append(s.findings, Finding{Rule: LTOObject, File: src.Name, Message: late.What, file: len(s.files) - 1})
	case errors.Is(err, input.ErrSkipped): // it holds nothing
	case err != nil:
		return err
	default:
		if err := s.object(o); err != nil {
			return err
		}
	}
	s.checked = append(s.checked, src.Name)
	return nil
}

// object checks an object or an image. After an error some rules were not applied.
func (s *Set) object(o *input.Object) error {
	l := &fileChecker{Object: o, set: s}
	if o.Machine != nil {
		var err error
		if l.code, err = locate.NewCode(o, locate.Options{Lines: true, Warn: s.opts.Warn}); err != nil {
			return err
		}
		defer l.code.Close()
	}
	return l.check()
}

// Files returns the names of the files that were checked.
func (s *Set) Files() []string { return s.checked }

// Errors returns why files could not be checked.
func (s *Set) Errors() []error { return s.errors }

// Findings returns all that the rules have found, sorted by file and place. No
// file may be added afterwards.
func (s *Set) Findings() []Finding {
	for _, l := range s.links {
		l.finish()
	}
	if len(s.opts.Require)+len(s.opts.Only) > 0 {
		known := s.knownNames()
		s.require(known)
		s.findUnlisted(known)
	}
	s.findings = slices.DeleteFunc(s.findings, func(f Finding) bool { return !s.applies(f.Rule) })
	s.noProbes()
	slices.SortStableFunc(s.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.File, b.File), cmp.Compare(a.at.Section, b.at.Section),
			cmp.Compare(a.Section, b.Section), cmp.Compare(a.Address, b.Address),
			cmp.Compare(a.Rule.Name, b.Rule.Name), cmp.Compare(a.Probe, b.Probe), cmp.Compare(a.Message, b.Message))
	})
	return s.findings
}

// applies reports whether a rule is applied. The consequences of a finding are findings of their own where its
// rule is not.
func (s *Set) applies(r *Rule) bool { return !slices.Contains(s.opts.Allow, r.Name) }

// probeSite is a site, and what its own file says of its probe.
type probeSite struct {
	name       Probe
	id         string
	fromStruct bool // by a struct sdt_probe
	link       *link
}

// Sites returns how many sites were found, and of how many probes.
func (s *Set) Sites() (sites, probes int) {
	names := map[Probe]bool{}
	for _, site := range s.sites {
		name := site.link.nameOf(site)
		names[Probe{Provider: name.Provider, Name: name.Name}] = true
	}
	return len(s.sites), len(names)
}

// noProbes reports a run without any site, unless another finding or an error explains it.
func (s *Set) noProbes() {
	isError := func(f Finding) bool { return f.Rule.Severity == Error }
	if len(s.sites) > 0 || s.incomplete || !s.applies(NoProbes) || slices.ContainsFunc(s.findings, isError) {
		return
	}
	s.findings = append(s.findings, Finding{
		Rule: NoProbes, Message: "no file that was given has a site of a probe; give those with the tracepoints, or --allow no-probes", file: len(s.files),
	})
}

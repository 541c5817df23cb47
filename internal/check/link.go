package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/linkerset"
)

// link is what is known of the objects of one link, and of all images of the same
// machine.
type link struct {
	set   *Set
	first int // the file that it was made for

	defined     map[string]bool     // by an object: probe objects
	exported    map[string]bool     // by an image
	uses        map[string][]use    // of probe objects that the file itself does not define, by name
	usedObjects map[location]bool   // probe objects that sites of their own file have
	usedIDs     map[scopedID]bool   // probes that are used without a record
	recorded    map[scopedID]bool   // probes that are used with one
	probes      []definition        // that structures define
	counts      map[scopedID]*count // of arguments
	traits      map[trait][]int     // the files that have it

	notes         map[scopedID]*probeNotes // probes that have notes
	brokenNotes   map[int]bool             // scopes with notes that cannot be read, so which sites have none is unknown
	guards        map[scopedID][]semaphore // that is-enabled tests load, and that no conversion has named
	guardReads    map[int][]semaphore      // that code reads, by scope; the finding is at the first read
	inSections    map[scopedSemaphore]bool // semaphores in a section of semaphores
	liveCalls     map[scopedID]bool        // probes with stubs that are still called
	recordNames   map[scopedID]bool        // semaphores of these, nil before they are asked for
	recordedCalls map[scopedID]bool        // probes with calls that have a record

	unconverted map[int]bool // images with tracepoints that were not converted, by file
	hasSites    map[int]bool // files with sites, or of whose probes another file has some

	recordProviders, noteProviders map[scopedID]bool // providers whose sites have records, or notes alone

	dof dofLink

	definitions map[string]*definition // by id, once a name was asked for

	hiddenFile  int // whose names hiddenNames are
	hiddenNames map[string]bool
}

// location is a place in one of the files.
type location struct {
	file int
	at   image.Addr
}

// scopedID is a probe of one image, or of all objects.
type scopedID struct {
	scope int // the file, or allObjects
	id    string
}

const allObjects = -1

// use is a reference of a file to a probe object that it does not define.
type use struct {
	finding Finding // what it is if it stays undefined
	hidden  bool    // reaches into no other module
}

func (s *Set) linkOf(o *input.Object) *link {
	key := abi{o.Machine, o.Encoding}
	if s.links[key] == nil {
		s.links[key] = &link{
			set: s, first: len(s.files) - 1, defined: map[string]bool{}, exported: map[string]bool{}, uses: map[string][]use{},
			usedObjects: map[location]bool{}, usedIDs: map[scopedID]bool{}, recorded: map[scopedID]bool{}, counts: map[scopedID]*count{}, traits: map[trait][]int{},
			notes: map[scopedID]*probeNotes{}, brokenNotes: map[int]bool{}, guards: map[scopedID][]semaphore{},
			guardReads: map[int][]semaphore{}, inSections: map[scopedSemaphore]bool{}, liveCalls: map[scopedID]bool{}, recordedCalls: map[scopedID]bool{},
			recordProviders: map[scopedID]bool{}, noteProviders: map[scopedID]bool{}, hiddenFile: -1,
			unconverted: map[int]bool{}, hasSites: map[int]bool{},
		}
	}
	return s.links[key]
}

// scope returns the scope of a file's probes: all objects share one, and each image has its own.
func (c *fileChecker) scope() int {
	if c.relocatable() {
		return allObjects
	}
	return c.index
}

// knowsUse reports whether a use of a probe object by a file was noted: the first
// one is enough.
func (l *link) knowsUse(name string, file int) bool {
	uses := l.uses[name]
	return len(uses) > 0 && uses[len(uses)-1].finding.file == file
}

// use notes a use of a probe object.
func (l *link) use(name string, u use) { l.uses[name] = append(l.uses[name], u) }

// usedAt notes a use of a probe object by the file that defines it.
func (l *link) usedAt(file int, probe image.Ref) {
	l.usedObjects[location{file, probe.Addr}] = true
	if probe.Symbol != "" && l.uses[probe.Symbol] == nil {
		l.uses[probe.Symbol] = []use{}
	}
}

// finish applies the rules that need all files.
func (l *link) finish() {
	for _, name := range slices.Sorted(maps.Keys(l.uses)) {
		l.undefined(name)
	}
	l.definedAlone()
	l.unused()
	l.duplicates()
	l.mismatches()
	l.mixed()
	l.disagreements()
	l.deadGuards()
	l.lostDOF()
}

func (l *link) add(f Finding, rule *Rule, format string, args ...any) {
	f.Rule, f.Message = rule, fmt.Sprintf(format, args...)
	l.set.findings = append(l.set.findings, f)
}

// nameOf returns the name of a site's probe, by its definition where another file has it.
func (l *link) nameOf(site probeSite) Probe {
	if site.fromStruct || site.id == "" {
		return site.name
	}
	if l.definitions == nil {
		l.definitions = map[string]*definition{}
		for i := range l.probes {
			if d := &l.probes[i]; d.probe.FromStruct && l.definitions[d.probe.ID] == nil {
				l.definitions[d.probe.ID] = d
			}
		}
	}
	d := l.definitions[site.id]
	if d == nil {
		return site.name
	}
	return Probe{
		d.probe.Provider, cmp.Or(d.probe.Module, site.name.Module), cmp.Or(d.probe.Function, site.name.Function), d.probe.Name,
	}
}

// defineProbe says what to do about a probe that no image defines.
const defineProbe = "link with -B and the directory libexec/sdtconvert, add what sdtconvert stubs writes, or give check the program or library that exports it, too"

// undefined finds the uses of an undefined probe object.
func (l *link) undefined(name string) {
	for _, u := range l.uses[name] {
		switch inImage := u.finding.Rule == UnresolvedProbe; {
		case l.exported[name] && !u.hidden, l.defined[name] && !inImage:
		case inImage:
			l.add(u.finding, UnresolvedProbe, "%s is left to the loader, and no file that was given exports it; %s", name, defineProbe)
		case l.exported[name]:
			l.add(u.finding, UndefinedProbe, "no object defines %s; a library does, but relative records do not reach there", name)
		default:
			l.add(u.finding, UndefinedProbe, "no file of the link defines %s", name)
		}
	}
}

// definition is a struct sdt_probe.
type definition struct {
	finding  Finding // at the structure
	probe    linkerset.Probe
	symbol   string // "" where none names it
	image    bool   // in an image
	strong   bool   // an object's, and the linker keeps no other of the name
	exported bool   // an image's, for others
	local    bool   // one of several that a name may have, in functions
	bySites  bool   // an image's, which no source has defined
}

func (d *definition) scopedID() scopedID {
	if d.image {
		return scopedID{d.finding.file, d.probe.ID}
	}
	return scopedID{allObjects, d.probe.ID}
}

// unused finds the definitions that no site has.
func (l *link) unused() {
	reported := map[string]bool{} // copies of one name are one
	for i := range l.probes {
		d := &l.probes[i]
		_, isUsed := l.uses[d.symbol]
		switch {
		case d.image && l.unconverted[d.finding.file]: // its sites are unknown
		case d.local && l.recorded[d.scopedID()]: // a function has one for each call, of which records name the first
		case l.usedObjects[location{d.finding.file, d.finding.at}], l.usedIDs[d.scopedID()], d.exported:
		case !d.image && d.symbol != "" && !d.local && (isUsed || reported[d.symbol]):
		default:
			reported[d.symbol] = true
			if d.bySites {
				l.add(d.finding, LeftoverProbe, "is defined for its sites, and none is left in the image")
				continue
			}
			l.add(d.finding, UnusedProbe, "is defined, and has no site")
		}
	}
}

// duplicates finds what is defined twice: by one name in objects, where a linker
// would refuse it or choose one, and by the name that readers see.
func (l *link) duplicates() {
	type identity struct {
		scope int
		name  Probe
	}
	symbols, names := map[string]*definition{}, map[identity]*definition{}
	for i := range l.probes {
		d := &l.probes[i]
		if d.local {
			continue
		}
		if !d.image && d.symbol != "" {
			if other := symbols[d.symbol]; other == nil || d.strong && !other.strong {
				symbols[d.symbol] = d
			} else if d.strong && other.strong {
				l.add(d.finding, DuplicateProbe, "is defined here and in %s", other.finding.File)
				continue
			}
		}
		if !d.probe.FromStruct {
			continue
		}
		p := d.probe
		key := identity{d.scopedID().scope, Probe{p.Provider, p.Module, p.Function, p.Name}}
		other := names[key]
		if other == nil {
			names[key] = d
			continue
		}
		if d.image || d.symbol != other.symbol {
			l.add(d.finding, DuplicateProbe, "is defined here and at %s of %s", other.finding.Place, other.finding.File)
		}
	}
}

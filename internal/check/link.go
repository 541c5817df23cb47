package check

import (
	"cmp"
	"fmt"
	"slices"

	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
)

// link is what is known of the objects of one link, and of all images of the same
// machine.
type link struct {
	set    *Set
	scopes map[int]*scope // by the file, or allObjects

	defined     map[string]bool   // by an object: probe objects
	exported    map[string]bool   // by an image
	uses        map[string][]use  // of probe objects that the file itself does not define, by name
	usedObjects map[location]bool // probe objects that sites of their own file have
	probes      []definition      // that structures define
	traits      map[trait][]int   // the files that have it

	unconverted map[int]bool // images with tracepoints that were not converted, by file
	hasSites    map[int]bool // files with sites, or of whose probes another file has some

	dofSites      []dofSite       // that dtrace -G has disabled in objects
	dofReferences map[string]bool // symbols of functions that DOF refers to

	definitions map[string]*definition // by id, once a name was asked for
}

// scope is what is known of the probes of one image, or of those of all objects of a link, by their ids.
type scope struct {
	usedIDs       map[string]bool          // probes that are used without a record
	recorded      map[string]bool          // probes that are used with one
	recordedCalls map[string]bool          // probes with calls that have a record
	liveCalls     map[string]bool          // probes with stubs that are still called
	counts        map[string][]countedCall // of arguments
	notes         map[string][]semaphore   // of each probe that has notes: what they name, each once
	brokenNotes   bool                     // notes are lost or cannot be read, so which sites had none is unknown

	guards      map[string][]semaphore // that is-enabled tests load, and that no conversion has named
	guardReads  []semaphore            // that code reads; the finding is at the first read
	inSections  map[semaphoreID]bool   // semaphores in a section of semaphores
	inImage     map[semaphoreID]bool   // those that an image has a symbol of
	recordNames map[string]bool        // semaphores of recordedCalls, nil before they are asked for

	recordProviders, noteProviders map[string]bool // providers whose sites have records, or notes alone
}

// location is a place in one of the files.
type location struct {
	file int
	at   image.Addr
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
			set: s, scopes: map[int]*scope{}, defined: map[string]bool{}, exported: map[string]bool{}, uses: map[string][]use{},
			usedObjects: map[location]bool{}, traits: map[trait][]int{}, dofReferences: map[string]bool{},
			unconverted: map[int]bool{}, hasSites: map[int]bool{},
		}
	}
	return s.links[key]
}

// scopeOf returns the scope of a file's probes: all objects share one, and each image has its own.
func (l *link) scopeOf(file int) *scope {
	if l.scopes[file] == nil {
		l.scopes[file] = &scope{
			usedIDs: map[string]bool{}, recorded: map[string]bool{}, recordedCalls: map[string]bool{}, liveCalls: map[string]bool{},
			counts: map[string][]countedCall{}, notes: map[string][]semaphore{}, guards: map[string][]semaphore{},
			inSections:      map[semaphoreID]bool{},
			inImage:         map[semaphoreID]bool{},
			recordProviders: map[string]bool{}, noteProviders: map[string]bool{},
		}
	}
	return l.scopes[file]
}

// knowsUse reports whether a use of a probe object by a file was noted: the first
// one is enough.
func (l *link) knowsUse(name string, file int) bool {
	uses := l.uses[name]
	return len(uses) > 0 && uses[len(uses)-1].finding.file == file
}

// addUse records a use of a probe object.
func (l *link) addUse(name string, u use) { l.uses[name] = append(l.uses[name], u) }

// finish applies the rules that need all files.
func (l *link) finish() {
	for name := range l.uses {
		l.undefined(name)
	}
	l.definedAlone()
	l.unused()
	l.duplicates()
	l.mismatches()
	l.mixed()
	l.missingDOF()
	for file, s := range l.scopes {
		l.disagreements(s)
		if !l.unconverted[file] {
			l.deadGuards(s)
		}
	}
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
func defineProbe() string {
	return "link with " + message.LinkersFlag() + ", add what sdtconvert stubs writes, or give check the program or library that exports it, too"
}

// undefined finds the uses of an undefined probe object.
func (l *link) undefined(name string) {
	for _, u := range l.uses[name] {
		switch inImage := u.finding.Rule == UnresolvedProbe; {
		case l.exported[name] && !u.hidden, l.defined[name] && !inImage:
		case inImage:
			l.add(u.finding, UnresolvedProbe, "%s is left to the loader, and no file that was given exports it; %s", name, defineProbe())
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
	scope    *scope
	symbol   string // "" where none names it
	image    bool   // in an image
	strong   bool   // an object's, and the linker keeps no other of the name
	exported bool   // an image's, for others
	local    bool   // one of several that a name may have, in functions
	bySites  bool   // an image's, which no source has defined
}

// unused finds the definitions that no site has.
func (l *link) unused() {
	reported := map[string]bool{} // copies of one name are one
	for i := range l.probes {
		d := &l.probes[i]
		_, isUsed := l.uses[d.symbol]
		switch {
		case d.image && l.unconverted[d.finding.file]: // its sites are unknown
		case d.local && d.scope.recorded[d.probe.ID]: // a function has one for each call, of which records name the first
		case l.usedObjects[location{d.finding.file, d.finding.at}], d.scope.usedIDs[d.probe.ID], d.exported:
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

// definedAlone finds the images that define probes and have no site at all, unless another
// file has sites of one of them.
func (l *link) definedAlone() {
	probes := map[int]int{}
	for i := range l.probes {
		if d := &l.probes[i]; d.image {
			file := d.finding.file
			probes[file]++
			l.hasSites[file] = l.hasSites[file] || len(l.uses[d.symbol]) > 0
		}
	}
	for file, n := range probes {
		if l.hasSites[file] || l.unconverted[file] {
			continue
		}
		l.unconverted[file] = true
		f := Finding{File: l.set.files[file], file: file}
		l.add(f, NotConverted, "not converted: %s; it defines %s, and no file that was given has a site of any", sites.ConvertAdvice(), message.Plural(n, "probe"))
	}
}

// duplicates finds what is defined twice: by one name in objects, where a linker
// would refuse it or choose one, and by the name that readers see.
func (l *link) duplicates() {
	type identity struct {
		scope *scope
		name  Probe
	}
	symbols, names := map[string]*definition{}, map[identity]*definition{}
	for i := range l.probes {
		d := &l.probes[i]
		if d.local {
			continue
		}
		if !d.image && d.symbol != "" {
			if first := symbols[d.symbol]; first == nil || d.strong && !first.strong {
				symbols[d.symbol] = d
			} else if d.strong && first.strong {
				l.add(d.finding, DuplicateProbe, "is defined here and in %s", first.finding.File)
				continue
			}
		}
		if !d.probe.FromStruct {
			continue
		}
		key := identity{d.scope, fullName(d.probe)}
		first := names[key]
		if first == nil {
			names[key] = d
			continue
		}
		if d.bySites && first.bySites && slices.Equal(d.probe.Args, first.probe.Args) {
			continue // of a macro, in objects whose groups ld -r has dissolved (--force-group-allocation)
		}
		if d.image || d.symbol != first.symbol {
			l.add(d.finding, DuplicateProbe, "is defined here and at %s of %s", first.finding.Place, first.finding.File)
		}
	}
}

// trait is something in which all objects of a link have to agree.
type trait struct {
	rule    *Rule
	subject string
	value   string
}

// trait notes that a file has a trait.
func (c *fileChecker) trait(rule *Rule, subject, value string) {
	t := trait{rule, subject, value}
	if have := c.link.traits[t]; len(have) == 0 || have[len(have)-1] != c.index {
		c.link.traits[t] = append(have, c.index)
	}
}

// mixed finds the files that differ from most others in a trait.
func (l *link) mixed() {
	bySubject := map[trait][]trait{} // without a value
	for t := range l.traits {
		subject := trait{t.rule, t.subject, ""}
		bySubject[subject] = append(bySubject[subject], t)
	}
	for subject, traits := range bySubject {
		slices.SortFunc(traits, func(a, b trait) int {
			switch recordsWithNotes { // the other images lack something, however many they are
			case a.value:
				return -1
			case b.value:
				return 1
			}
			return cmp.Or(cmp.Compare(len(l.traits[b]), len(l.traits[a])), cmp.Compare(l.traits[a][0], l.traits[b][0]), cmp.Compare(a.value, b.value))
		})
		label := ""
		if subject.subject != "" {
			label = subject.subject + ": "
		}
		usual := traits[0]
		for _, t := range traits[1:] {
			for _, file := range l.traits[t] {
				f := Finding{File: l.set.files[file], file: file}
				l.add(f, t.rule, "%s%s here, %s in %s; compile and convert it again with the flags of the other", label, t.value, usual.value, l.set.files[l.traits[usual][0]])
			}
		}
	}
}

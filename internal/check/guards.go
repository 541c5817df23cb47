package check

import (
	"maps"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// guardSymbols notes the semaphores that have no name of a probe yet. Conversions with notes
// give them one.
func (c *fileChecker) guardSymbols() error {
	found, err := c.NamesContain([][]byte{[]byte(patch.GuardPrefix)})
	if err != nil || !found {
		return err
	}
	syms, err := c.Symbols()
	if err != nil {
		return err
	}
	for _, s := range syms.WithPrefix(patch.GuardPrefix) {
		at := c.symbolRef(&s)
		id := strings.TrimPrefix(s.Name, patch.GuardPrefix)
		f, err := c.finding(DeadGuard, at.Addr, id, "")
		if err != nil {
			return err
		}
		key := scopedID{c.scope(), idOf(linkerset.SplitID(id))}
		c.link.guards[key] = append(c.link.guards[key], semaphore{c.semaphoreID(at), s.Name, *f})
	}
	return nil
}

// symbolRef returns what a relocation against a symbol refers to.
func (c *fileChecker) symbolRef(s *elfreloc.Symbol) image.Ref {
	at := image.Ref{Addr: image.Addr{Offset: s.Value}, Undefined: s.Section == 0}
	if c.relocatable() {
		at.Addr.Section, at.Symbol = max(s.Section, 0), s.Name
	}
	return at
}

// deadGuards finds the guards that no tracer makes true.
func (l *link) deadGuards() {
	reported, hasNote := map[scopedSemaphore]bool{}, l.namedSemaphores()
	for _, key := range slices.SortedFunc(maps.Keys(l.guards), compareScoped) {
		for i := range l.guards[key] {
			g := &l.guards[key][i]
			isTest := !strings.HasPrefix(g.name, patch.GuardPrefix)
			if probe := l.notes[key]; l.unconverted[key.scope] {
				continue
			} else if probe != nil {
				l.otherSemaphore(probe, g)
			} else if isTest && g.name != "" || !isTest && l.recordedCalls[key] {
				if !hasNote[scopedSemaphore{key.scope, g.id}] {
					l.withoutNote(key, g)
				}
			} else {
				continue // if code reads it, that finds it
			}
			reported[scopedSemaphore{key.scope, g.id}] = true
		}
	}
	for _, scope := range slices.Sorted(maps.Keys(l.guardReads)) {
		for i := range l.guardReads[scope] {
			r := &l.guardReads[scope][i]
			key := scopedSemaphore{scope, r.id}
			if reported[key] || l.brokenNotes[scope] || l.unconverted[scope] || hasNote[key] || !l.isGuard(scope, r) || l.ofProviderFile(scope, r.name) {
				continue
			}
			reported[key] = true
			if id, ok := strings.CutPrefix(r.name, patch.GuardPrefix); ok {
				l.withoutNote(scopedID{scope, idOf(linkerset.SplitID(id))}, r)
				continue
			}
			if l.recordsOf(scope, r.name) {
				l.add(r.finding, DeadGuard, "a guard reads %s, and no site of the probe has a note; %s", r.name, withNotes)
				continue
			}
			l.add(r.finding, DeadGuard, "a guard reads %s, which no note names, so no tracer raises it; %s", r.name, oneName)
		}
	}
}

// recordsOf reports whether a file has records of the probe that a semaphore is named after.
func (l *link) recordsOf(scope int, semaphore string) bool {
	if l.recordNames == nil {
		l.recordNames = map[scopedID]bool{}
		for key := range l.recordedCalls {
			l.recordNames[scopedID{key.scope, stapsdt.SemaphoreName(linkerset.SplitID(key.id))}] = true
		}
	}
	return l.recordNames[scopedID{scope, semaphore}]
}

// What to do about guards.
const (
	withNotes = "convert every object with notes (--stapsdt beside a --layout)"
	oneName   = "give guard and tracepoint one name"
)

// otherSemaphore finds a guard that reads another semaphore than tracers raise, or none where
// there is one.
func (l *link) otherSemaphore(probe *probeNotes, g *semaphore) {
	isSame := func(s semaphore) bool { return s.id == g.id }
	switch none := len(probe.semaphores) == 0; {
	case none && g.name == "" || slices.ContainsFunc(probe.semaphores, isSame):
	case none:
		l.add(g.finding, DeadGuard, "a guard reads %s, and the notes of the probe name no semaphore; %s", g.name, withNotes)
	case g.name == "":
		l.add(g.finding, DeadGuard, "this test is never true, and the notes of the probe name %s; %s", probe.semaphores[0].name, withNotes)
	default:
		l.add(g.finding, DeadGuard, "a guard reads %s, and the notes of the probe name %s; %s", g.name, probe.semaphores[0].name, withNotes)
	}
}

// withoutNote finds a guard of a probe that has no note: no tracer knows it. What is still to
// be converted may get one.
func (l *link) withoutNote(key scopedID, g *semaphore) {
	switch {
	case l.brokenNotes[key.scope], l.liveCalls[key]:
	case l.recordedCalls[key]:
		l.add(g.finding, DeadGuard, "a guard reads %s, and no site of the probe has a note; %s", g.name, withNotes)
	default:
		l.add(g.finding, DeadGuard, "a guard reads %s, and the probe has no site, so no tracer raises it; %s", g.name, oneName)
	}
}

// namedSemaphores returns those that notes of any probe name: a:b_c and a_b:c share one.
func (l *link) namedSemaphores() map[scopedSemaphore]bool {
	all := map[scopedSemaphore]bool{}
	for key, probe := range l.notes {
		for i := range probe.semaphores {
			all[scopedSemaphore{key.scope, probe.semaphores[i].id}] = true
		}
	}
	return all
}

// isGuard reports whether what code reads is a semaphore. Other variables may have such a
// name too, but they are not in .probes.
func (l *link) isGuard(scope int, s *semaphore) bool {
	return strings.HasPrefix(s.name, patch.GuardPrefix) || l.inSections[scopedSemaphore{scope, s.id}]
}

// ofProviderFile reports whether a semaphore is of a provider whose sites have notes and no
// records. The header of a provider file has a test of each of its probes, so that none is
// misspelt, and sources may test what they do not fire.
func (l *link) ofProviderFile(scope int, semaphore string) bool {
	file := false
	for i, end := 0, 0; i < mostParts; i++ {
		next := strings.IndexByte(semaphore[end:], '_')
		if next < 0 {
			break
		}
		provider := scopedID{scope, semaphore[:end+next]}
		if l.recordProviders[provider] {
			return false
		}
		file = file || l.noteProviders[provider]
		end += next + 1
	}
	return file
}

// mostParts is in how many places the name of a semaphore is taken apart, so that one of
// nothing but underscores takes no longer.
const mostParts = 64

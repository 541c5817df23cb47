package check

import (
	"fmt"
	"maps"
	"slices"

	"sdtconvert/arch"
)

// count is the number of arguments that calls of one probe have.
type count struct{ calls []calling }

// calling is what the debug information of a file says of the calls in it.
type calling struct {
	args    int
	finding Finding // at the first site
}

// prototypes notes with how many arguments a file calls its stubs. Debug
// information that makes no sense is no fault of the probes.
func (l *looker) prototypes() error {
	if err := l.code.Read(); err != nil || l.code.Lines() == nil {
		return err
	}
	names := l.set.opts.Names
	all, _ := l.code.Lines().AllPrototypes(names.IsStub)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		kind, id, _ := names.Match(name)
		at, ok := l.firstSite[id]
		if kind != arch.Probe || !ok {
			continue
		}
		key := scopedID{l.scope(), id}
		if l.link.counts[key] == nil {
			l.link.counts[key] = &count{}
		}
		f, err := l.finding(ArgumentMismatch, at, id, "")
		if err != nil {
			return err
		}
		for _, params := range all[name] {
			l.link.counts[key].calls = append(l.link.counts[key].calls, calling{len(params), *f})
		}
	}
	return nil
}

func arguments(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// mismatches finds the calls whose number of arguments is not that of the
// definition, or where that is not known, not that of the first calls.
func (l *link) mismatches() {
	defined := map[scopedID]*definition{}
	for i := range l.probes {
		if d := &l.probes[i]; d.probe.ID != "" && len(d.probe.Args) > 0 && defined[d.scopedID()] == nil {
			defined[d.scopedID()] = d
		}
	}
	for key, c := range l.counts {
		want, where := c.calls[0].args, "other calls have"
		if d := defined[key]; d != nil {
			want = d.probe.Args[len(d.probe.Args)-1].Index + 1
			where = fmt.Sprintf("the definition in %s has", d.finding.File)
		} else if c.calls[0].finding.File != "" {
			where = fmt.Sprintf("calls in %s have", c.calls[0].finding.File)
		}
		for _, call := range c.calls {
			if call.args != want {
				l.add(call.finding, ArgumentMismatch, "a call has %s, and %s %d", arguments(call.args), where, want)
			}
		}
	}
}

package check

import (
	"fmt"
	"maps"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/emit/usdt"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// count is the number of arguments that calls of one probe have.
type count struct{ calls []countedCall }

// countedCall is what the debug information of a file says of the calls in it.
type countedCall struct {
	args    int
	finding Finding // at the first site
}

// prototypes notes with how many arguments a file calls its stubs. Debug
// information that makes no sense is not a fault of the probes.
func (c *fileChecker) prototypes() error {
	if err := c.code.Read(); err != nil || c.code.Lines() == nil {
		return err
	}
	names := c.set.opts.Names
	prototypes, _ := c.code.Lines().AllPrototypes(names.IsStub)
	for _, name := range slices.Sorted(maps.Keys(prototypes)) {
		kind, id, _ := names.Match(name)
		at, ok := c.firstSite[id]
		if kind != arch.Probe || !ok {
			continue
		}
		for _, params := range prototypes[name] {
			if err := c.count(id, at, len(params)); err != nil {
				return err
			}
		}
	}
	return nil
}

// counted is a number of arguments that a file passes to a probe.
type counted struct {
	id   string
	args int
}

// count records that a site of a probe has so many arguments. A number counts once in a file, at its
// first site.
func (c *fileChecker) count(id string, at image.Addr, args int) error {
	if c.counts[counted{id, args}] {
		return nil
	}
	c.counts[counted{id, args}] = true
	f, err := c.finding(ArgumentMismatch, at, id, "")
	if err != nil {
		return err
	}
	key := scopedID{c.scope(), id}
	if c.link.counts[key] == nil {
		c.link.counts[key] = &count{}
	}
	c.link.counts[key].calls = append(c.link.counts[key].calls, countedCall{args, *f})
	return nil
}

// operands notes with how many arguments a file has the recorded sites that were nops from
// the start. Of objects that is what the compiler has written down, of images what their
// notes say; in those the arguments of calls are too, and of as many registers as there are
// where nothing was known of them.
func (c *fileChecker) operands() error {
	if c.relocatable() {
		return c.operandsOfNops()
	}
	data := c.Object.ABI().Data
	unknown := map[string]bool{}
	for _, form := range []arch.Form{arch.Call, arch.Tail, arch.CondTail} {
		unknown[stapsdt.Operands(c.Machine, form, data, stapsdt.Words(c.Machine))] = true
	}
	for i := range c.entries {
		e := &c.entries[i]
		note := c.noteAt[e.Site]
		if e.Kind != arch.Probe || note == nil || unknown[note.Args] {
			continue
		}
		probe, err := c.probes.Lookup(e.Probe)
		if err == nil && c.noteID(probe).id == note.ID() { // and not of a function that was folded into this one
			err = c.countOperands(e, note.Args)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *fileChecker) operandsOfNops() error {
	if c.sectionNamed(patch.OperandsSection) == nil {
		return nil
	}
	var at []image.Addr
	for i := range c.entries {
		if c.entries[i].Kind == arch.Probe {
			at = append(at, c.entries[i].Site)
		}
	}
	texts, err := (&patch.Scan{Object: c.Object.Object, Machine: c.Machine}).OperandsAt(at)
	if err != nil {
		return nil // the conversion has read them, and nothing reads them again
	}
	for i := range c.entries {
		e := &c.entries[i]
		if text, ok := texts[e.Site]; ok && e.Kind == arch.Probe {
			if err := c.countOperands(e, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *fileChecker) countOperands(e *linkerset.Entry, text string) error {
	probe, err := c.probes.Lookup(e.Probe)
	if err != nil || probe.ID == "" {
		return err
	}
	n, _ := usdt.Operands(text)
	return c.count(probe.ID, e.Site, n)
}

func arguments(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// mismatches finds the calls whose number of arguments differs from the definition or, if no
// definition has arguments, from the first call.
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

package check

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/emit/usdt"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// countedCall is what the debug information of a file says of the calls in it.
type countedCall struct {
	args    int
	finding Finding // at the first site
}

// prototypes notes with how many arguments a file calls its stubs. Debug
// information that makes no sense is not a fault of the probes.
func (c *fileChecker) prototypes() {
	if !c.hasCalls || !c.read() || c.code.Lines() == nil {
		return
	}
	names := c.set.opts.Names
	prototypes, _ := c.code.Lines().Prototypes(names.IsStub, math.MaxInt)
	for _, name := range slices.Sorted(maps.Keys(prototypes)) {
		kind, id, _ := names.Match(name)
		at, ok := c.firstSite[id]
		if kind != arch.Probe || !ok {
			continue
		}
		for _, params := range prototypes[name] {
			c.count(id, at, len(params))
		}
	}
}

// counted is a number of arguments that a file passes to a probe.
type counted struct {
	id   string
	args int
}

// count records that a site of a probe has so many arguments. A number counts once in a file, at its
// first site.
func (c *fileChecker) count(id string, at image.Addr, args int) {
	if c.counts[counted{id, args}] {
		return
	}
	c.counts[counted{id, args}] = true
	if f := c.finding(ArgumentMismatch, at, id, ""); c.err == nil {
		c.scope.counts[id] = append(c.scope.counts[id], countedCall{args, f})
	}
}

// operands notes with how many arguments a file has the recorded sites that were nops from
// the start. Of objects that is what the compiler has written down, of images what their
// notes say; in those the arguments of calls are too, and of as many registers as there are
// where nothing was known of them.
func (c *fileChecker) operands() {
	if c.relocatable() {
		c.operandsOfNops()
		return
	}
	data := c.Object.ABI().Data
	unknown := map[string]bool{}
	for _, form := range []arch.Form{arch.Call, arch.Tail, arch.CondTail} {
		unknown[stapsdt.Operands(c.Machine, form, data, stapsdt.Words(c.Machine))] = true
	}
	for e := range c.callEntries() {
		note := c.noteAt[e.Site]
		if note == nil || unknown[note.Args] {
			continue
		}
		if noteID(c.probe(e.Probe)) == note.ID() { // and not of a function that was folded into this one
			c.countOperands(e, note.Args)
		}
	}
}

func (c *fileChecker) operandsOfNops() {
	if c.sectionNamed(patch.OperandsSection) == nil {
		return
	}
	var at []image.Addr
	for e := range c.callEntries() {
		at = append(at, e.Site)
	}
	texts, err := (&patch.Scan{Object: c.Object.Object, Machine: c.Machine}).OperandsAt(at)
	if err != nil {
		return // the conversion has read them, and nothing reads them again
	}
	for e := range c.callEntries() {
		if text, ok := texts[e.Site]; ok {
			c.countOperands(e, text)
		}
	}
}

func (c *fileChecker) countOperands(e *linkerset.Entry, text string) {
	if probe := c.probe(e.Probe); probe.ID != "" {
		n, _ := usdt.Operands(text)
		c.count(probe.ID, e.Site, n)
	}
}

// mismatches finds the calls whose number of arguments differs from the definition or, if no
// definition has arguments, from the first call.
func (l *link) mismatches() {
	type scopedID struct {
		scope *scope
		id    string
	}
	defined := map[scopedID]*definition{}
	for i := range l.probes {
		d := &l.probes[i]
		if key := (scopedID{d.scope, d.probe.ID}); d.probe.ID != "" && len(d.probe.Args) > 0 && defined[key] == nil {
			defined[key] = d
		}
	}
	for _, s := range l.scopes {
		for id, calls := range s.counts {
			want, where := calls[0].args, "other calls have"
			if d := defined[scopedID{s, id}]; d != nil {
				want = d.probe.Args[len(d.probe.Args)-1].Index + 1
				where = fmt.Sprintf("the definition in %s has", d.finding.File)
			} else if calls[0].finding.File != "" {
				where = fmt.Sprintf("calls in %s have", calls[0].finding.File)
			}
			for _, call := range calls {
				if call.args != want {
					l.add(call.finding, ArgumentMismatch, "a call has %s, and %s %d", message.Plural(call.args, "argument"), where, want)
				}
			}
		}
	}
}

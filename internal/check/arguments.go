package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/message"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/patch"
)

// countedCall is what a file says of the arguments of a call.
type countedCall struct {
	args    int
	exact   bool    // of the site, and not of another call of the file
	atLeast bool    // more may follow: notes of calls leave out floating-point numbers and structures, and what is behind them
	finding Finding // at the site
}

// probeCall is a call of a probe's stub, or its site.
type probeCall struct {
	id string
	at image.Addr
}

// prototypes notes with how many arguments a file calls its stubs, by its debug information. A number that no site
// is known to have counts at the first one. Debug information that makes no sense is not a fault of the probes.
func (c *fileChecker) prototypes() {
	if !c.hasCalls || !c.read() || c.code.Lines() == nil {
		return
	}
	names := c.set.opts.Names
	calls, _ := c.code.Lines().Calls(names.IsStub)
	stubs := map[string][]string{} // by probe, sorted
	for _, name := range calls.Functions() {
		if kind, id, _ := names.Match(name); kind == arch.Probe {
			stubs[id] = append(stubs[id], name)
		}
	}
	attributed := map[idCount]bool{}
	for _, call := range c.calls {
		for _, name := range stubs[call.id] {
			n, exact, ok := calls.Parameters(name, call.at.Section, call.at.Offset)
			if key := (idCount{call.id, n}); ok && (exact || !attributed[key]) {
				attributed[key] = true
				c.count(call.id, call.at, n, exact)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(stubs)) {
		for _, name := range stubs[id] {
			for _, n := range calls.Numbers(name) {
				if at, ok := c.firstSite[id]; ok && !attributed[idCount{id, n}] {
					c.count(id, at, n, false)
				}
			}
		}
	}
}

// idCount is a number of arguments that a file passes to a probe.
type idCount struct {
	id   string
	args int
}

// counted is a number of arguments that was noted of a site.
type counted struct {
	at image.Addr
	idCount
}

// count records that a site of a probe, or if exact is false another call of the file, has so many arguments, once.
func (c *fileChecker) count(id string, at image.Addr, args int, exact bool) {
	key := counted{at, idCount{id, args}}
	if c.counted[key] {
		return
	}
	c.counted[key] = true
	if f := c.finding(ArgumentMismatch, at, id, ""); c.err == nil {
		c.scope.counts[id] = append(c.scope.counts[id], countedCall{args: args, exact: exact, finding: f})
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
		unknown[notes.Operands(c.Machine, form, data, notes.WordTypes(c.Machine))] = true
	}
	for e := range c.notedCalls() {
		note := e.Note
		if unknown[note.Args] {
			continue
		}
		if probe := c.probe(e); note.Names(&probe) { // and not of a function that was folded into this one
			if c.countOperands(e, note.Args); c.mayBeCall(note.Args) {
				if calls := c.scope.counts[probe.ID]; len(calls) > 0 && calls[len(calls)-1].finding.at == e.Address {
					calls[len(calls)-1].atLeast = true
				}
			}
		}
	}
}

// mayBeCall reports whether operands are where the arguments of a call are: then the note may leave out some.
func (c *fileChecker) mayBeCall(text string) bool {
	var types []notes.ArgType
	for _, operand := range arch.SplitOperands(text) {
		number, _, _ := strings.Cut(operand, "@")
		size, err := strconv.Atoi(number)
		if err != nil {
			return false
		}
		types = append(types, notes.ArgType{Size: max(size, -size), Signed: size < 0})
	}
	return slices.ContainsFunc([]arch.Form{arch.Call, arch.Tail, arch.CondTail}, func(form arch.Form) bool {
		return notes.Operands(c.Machine, form, c.Object.ABI().Data, types) == strings.Join(arch.SplitOperands(text), " ")
	})
}

func (c *fileChecker) operandsOfNops() {
	if c.sectionNamed(patch.OperandsSection) == nil {
		return
	}
	var at []image.Addr
	for e := range c.recordedCalls() {
		at = append(at, e.Address)
	}
	texts, err := (&patch.Scan{Object: c.Object.Object, Machine: c.Machine}).OperandsAt(at)
	if err != nil {
		return // the conversion has read them, and nothing reads them again
	}
	for e := range c.recordedCalls() {
		if text, ok := texts[e.Address]; ok {
			c.countOperands(e, text)
		}
	}
}

func (c *fileChecker) countOperands(e *sites.Site, text string) {
	if probe := c.probe(e); probe.ID != "" {
		n, _ := notes.CountOperands(text)
		c.count(probe.ID, e.Address, n, true)
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
			first := calls[max(0, slices.IndexFunc(calls, func(call countedCall) bool { return !call.atLeast }))]
			want, where, d := first.args, "other calls have", defined[scopedID{s, id}]
			if d != nil {
				want = d.probe.Args[len(d.probe.Args)-1].Index + 1
				where = fmt.Sprintf("the definition in %s has", d.finding.File)
			} else if first.finding.File != "" {
				where = fmt.Sprintf("calls in %s have", first.finding.File)
			}
			for _, call := range calls {
				subject := "a call has"
				if !call.exact {
					subject = "one of the calls in this file has"
				}
				if call.atLeast && call.args < want && (d == nil || call.args < len(d.probe.Args) && !isWord(d.probe.Args[call.args].Native)) {
					continue
				}
				if call.args != want {
					l.add(call.finding, ArgumentMismatch, "%s %s, and %s %d", subject, message.Plural(call.args, "argument"), where, want)
				}
			}
		}
	}
}

// isWord reports whether a type of C is a pointer or an integer, whose place notes of calls have. Others may be names of structures.
func isWord(native string) bool {
	if strings.HasSuffix(native, "*") {
		return true
	}
	words := strings.Fields(native)
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool {
		return !slices.Contains([]string{"const", "volatile", "signed", "unsigned", "char", "short", "int", "long", "_Bool", "bool", "enum", "size_t", "ssize_t"}, word) &&
			!(strings.HasSuffix(word, "_t") && strings.Contains(word, "int"))
	})
}

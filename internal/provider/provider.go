// Package provider reads provider files, by which the projects that have probes for DTrace
// declare them (`dtrace -h -s probes.d`): the grammar of D as far as it declares, and what
// other readers of such files take.
//
// No probe is lost: what cannot be understood where a probe may stand is an error with its
// place. What stands beside providers, as declarations of C and clauses of D, is passed over.
package provider

import (
	"fmt"
	"slices"
	"strings"
)

// Provider is a provider with its probes, in the order of the file.
type Provider struct {
	Name   string
	Pos    Pos
	Probes []*Probe
	Attributes
}

// Probe is a probe as it is declared.
type Probe struct {
	Name string // as in the file: __ stands for a dash
	Pos  Pos
	Args []Arg
	// Translated are the arguments that D programs see instead, nil where these are Args.
	Translated []Arg
}

// Arg is an argument of a probe.
type Arg struct {
	Type string // in C, as "const char *"
	Name string // "" where it has none
	// Length is what an array has in its brackets, if that is a name: of the argument that has its length.
	Length string
}

// Limits of names, in bytes: those of DTrace (DTRACE_PROVNAMELEN, DTRACE_NAMELEN).
const (
	maxName = 63
	// maxDOFName is that of a provider that kernels append the number of the process to.
	maxDOFName = 53
	// maxType is how long the type of an argument may be with its NUL (DTRACE_ARGTYPELEN).
	maxType = 128
	// MaxArgs is how many arguments the notes of a probe tell, as SystemTap's macros do.
	MaxArgs = 12
)

// Macro returns the macro that fires a probe; with _ENABLED behind it, it tests for
// tracers.
func Macro(provider, probe string) string {
	return strings.ToUpper(provider + "_" + strings.ReplaceAll(probe, "__", "_"))
}

// MacroEnabled returns the macro that tells whether a probe is traced.
func MacroEnabled(provider, probe string) string { return Macro(provider, probe) + "_ENABLED" }

// Check applies the rules that hold for all providers of a run, whichever files they are
// of. It returns every fault. Probes of stubs may have more arguments than notes tell.
func Check(providers []*Provider, stubs bool) (faults []error) {
	c := &checker{stubs: stubs, macros: map[string]*owner{}, symbols: map[string]*owner{}, probes: map[string]*Probe{}}
	for _, p := range providers {
		if len(p.Name) > maxName {
			c.fault(p.Pos, "", "the name of provider %s has %d characters, and may have %d", p.Name, len(p.Name), maxName)
		}
		for _, probe := range p.Probes {
			c.probe(p, probe)
		}
	}
	return c.faults
}

// CheckDOF applies the rules for what is told to kernels with DTrace, besides those of Check.
func CheckDOF(providers []*Provider) (faults []error) {
	c := &checker{}
	for _, p := range providers {
		switch {
		case isDigit(p.Name[len(p.Name)-1]):
			c.fault(p.Pos, "choose another one", "the name of provider %s ends in a digit, where DTrace puts the number of the process", p.Name)
		case p.Name == "pid":
			c.fault(p.Pos, "choose another one", "provider pid is DTrace's own")
		case len(p.Name) > maxDOFName && len(p.Name) <= maxName:
			c.fault(p.Pos, "", "the name of provider %s has %d characters, and may have %d, because DTrace appends the number of the process", p.Name, len(p.Name), maxDOFName)
		}
		for _, probe := range p.Probes {
			for _, a := range slices.Concat(probe.Args, probe.Translated) {
				if len(a.Type) >= maxType {
					c.fault(probe.Pos, "give it a name with typedef", "a type of probe %s has %d characters, and may have %d: %s", probe.Name, len(a.Type), maxType-1, a.Type)
				}
			}
		}
	}
	return c.faults
}

// Warnings returns what is worth knowing of providers, and no fault on Linux.
func Warnings(providers []*Provider) (warnings []error) {
	for _, p := range providers {
		if isDigit(p.Name[len(p.Name)-1]) {
			warnings = append(warnings, &Error{
				Pos: p.Pos, What: fmt.Sprintf("the name of provider %s ends in a digit", p.Name),
				Cure: "DTrace puts the number of the process there and refuses it; choose another one",
			})
		}
	}
	return warnings
}

type checker struct {
	stubs           bool
	macros, symbols map[string]*owner
	probes          map[string]*Probe // by provider and name
	faults          []error
}

// owner is the probe that a name is made of.
type owner struct {
	provider string
	*Probe
}

func (o *owner) String() string { return o.provider + ":::" + o.Name }

func (c *checker) fault(pos Pos, cure, format string, args ...any) {
	c.faults = append(c.faults, &Error{Pos: pos, What: fmt.Sprintf(format, args...), Cure: cure})
}

func (c *checker) probe(p *Provider, probe *Probe) {
	if len(probe.Name) > maxName {
		c.fault(probe.Pos, "", "the name of probe %s has %d characters, and may have %d", probe.Name, len(probe.Name), maxName)
	}
	key := p.Name + ":" + probe.Name
	if old := c.probes[key]; old != nil {
		c.fault(probe.Pos, "remove one", "probe %s is declared twice, first at %v", probe.Name, old.Pos)
		return
	}
	c.probes[key] = probe
	if len(probe.Args) > MaxArgs && !c.stubs {
		c.fault(probe.Pos, "", "probe %s has %d arguments, and notes of probes tell %d at most", probe.Name, len(probe.Args), MaxArgs)
	}
	for i, from := range probe.Mapping() {
		if from < 0 { // it stands for nothing
			c.fault(probe.Pos, "", "argument %d of the translation of probe %s stands for none of its %d arguments", i, probe.Name, len(probe.Args))
		}
	}
	me := &owner{p.Name, probe}
	for _, macro := range []string{Macro(p.Name, probe.Name), MacroEnabled(p.Name, probe.Name)} {
		if c.claim(c.macros, "macro", macro, me) {
			return
		}
	}
	c.claim(c.symbols, "semaphore", p.Name+"_"+probe.Name, me)
}

// claim gives a name to a probe, and reports whether another one has it.
func (c *checker) claim(names map[string]*owner, what, name string, me *owner) (taken bool) {
	if old := names[name]; old != nil {
		c.fault(me.Pos, "rename one", "%v and %v (%v) would have one %s, %s", me, old, old.Pos, what, name)
		return true
	}
	names[name] = me
	return false
}

// Mapping returns which argument of the probe each that D programs see is, by index; -1
// for none. A translation names arguments or, where those of the probe have no names,
// lists them in their order.
func (p *Probe) Mapping() []int {
	if p.Translated == nil {
		same := make([]int, len(p.Args))
		for i := range same {
			same[i] = i
		}
		return same
	}
	isNamed := slices.ContainsFunc(p.Args, func(a Arg) bool { return a.Name != "" })
	from := make([]int, len(p.Translated))
	for i, a := range p.Translated {
		if from[i] = i; i >= len(p.Args) {
			from[i] = -1
		}
		if isNamed && a.Name != "" {
			from[i] = slices.IndexFunc(p.Args, func(in Arg) bool { return in.Name == a.Name })
		}
	}
	return from
}

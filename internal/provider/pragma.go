package provider

import (
	"slices"
	"strings"
)

// attribute is a pragma that says how stable a part of a provider is.
type attribute struct {
	pos       Pos
	provider  string
	index     int // an index of partsOf
	stability Attribute
}

// Attribute is how stable a part of a provider is, in DTrace's numbers.
type Attribute struct {
	Name, Data byte // from 0, Internal, to 7, Standard
	Class      byte // from 0, Unknown, to 5, Common
}

// Attributes are those of the provider itself, and of the names of its modules, functions and probes,
// and of arguments.
type Attributes [5]Attribute

// unstated holds for a part that no pragma names: Private/Private/Unknown.
var unstated = Attribute{Name: 1, Data: 1}

// The words of stability attributes (Solaris Dynamic Tracing Guide, chapter 39).
var (
	stabilities = []string{"Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard"}
	classes     = []string{"Unknown", "CPU", "Platform", "Group", "ISA", "Common"}
	partsOf     = []string{"provider", "module", "function", "name", "args"}
)

// directive takes in a line that begins with #: a pragma of D, or where the next lines come from. Others are
// remarks, but conditions are counted.
func (p *parser) directive(t Token) {
	words := strings.Fields(t.Text)
	if len(words) == 0 {
		return
	}
	switch words[0] {
	case "if", "ifdef", "ifndef":
		p.groups++
	case "endif":
		p.groups = max(0, p.groups-1)
	case "pragma":
		if len(words) > 1 && words[1] == "D" {
			p.pragma(t.Pos, words[2:])
		}
	}
}

// pragma reads #pragma D attributes NAME/DATA/CLASS provider PROVIDER PART.
func (p *parser) pragma(pos Pos, words []string) {
	if len(words) == 0 || words[0] != "attributes" {
		if len(words) > 0 && words[0] != "option" && words[0] != "depends_on" && words[0] != "binding" {
			p.warn(pos, "", "#pragma D %s is not known, and has no effect", words[0])
		}
		return
	}
	const form = "it is: #pragma D attributes Evolving/Evolving/Common provider NAME provider"
	if len(words) < 4 || words[2] != "provider" {
		if len(words) < 3 {
			p.fault(pos, form, "these attributes are not complete")
		}
		return // of something else than a provider
	}
	stability := strings.Split(words[1], "/")
	a := attribute{pos: pos, provider: words[3]}
	if len(stability) == 3 {
		name, data, class := number(stabilities, stability[0]), number(stabilities, stability[1]), number(classes, stability[2])
		if min(name, data, class) < 0 {
			stability = nil
		}
		a.stability = Attribute{Name: byte(name), Data: byte(data), Class: byte(class)}
	}
	if len(stability) != 3 {
		p.fault(pos, form, "%q is not a stability", words[1])
	}
	if len(words) == 5 {
		a.index = slices.Index(partsOf, words[4])
	}
	if len(words) != 5 || a.index < 0 {
		p.fault(pos, form, "attributes are those of a part of a provider: %s", strings.Join(partsOf, ", "))
		return
	}
	p.attributes = append(p.attributes, a)
}

// number finds a word as DTrace does, which does not care for capitals; -1 if it is none.
func number(words []string, word string) int {
	return slices.IndexFunc(words, func(s string) bool { return strings.EqualFold(s, word) })
}

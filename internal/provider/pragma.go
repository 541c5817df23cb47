package provider

import (
	"slices"
	"strings"

	"sdtconvert/internal/provider/token"
)

// attribute is a pragma that says how stable a part of a provider is.
type attribute struct {
	pos      token.Pos
	provider string
}

// The words of stability attributes (Solaris Dynamic Tracing Guide, chapter 39).
var (
	stabilities = []string{"Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard"}
	classes     = []string{"Unknown", "CPU", "Platform", "Group", "ISA", "Common"}
	partsOf     = []string{"provider", "module", "function", "name", "args"}
)

// directive takes in a line that begins with #: a pragma of D, or where the next lines come from. Others are
// remarks, but conditions are counted.
func (p *parser) directive(t token.Token) {
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
func (p *parser) pragma(pos token.Pos, words []string) {
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
	if len(stability) != 3 || !known(stabilities, stability[0]) || !known(stabilities, stability[1]) || !known(classes, stability[2]) {
		p.fault(pos, form, "%q is no stability", words[1])
	}
	if len(words) != 5 || !slices.Contains(partsOf, words[4]) {
		p.fault(pos, form, "attributes are those of a part of a provider: %s", strings.Join(partsOf, ", "))
	}
	p.attributes = append(p.attributes, attribute{pos, words[3]})
}

// known compares as DTrace does, which does not care for capitals.
func known(all []string, word string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return strings.EqualFold(s, word) })
}

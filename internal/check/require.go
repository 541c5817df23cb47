package check

import (
	"fmt"
	"slices"
	"strings"

	"sdtconvert/internal/message"
)

// Requirement is a probe that some site has to have.
type Requirement struct {
	Text string // as the user has written it
	// Match reports whether a probe is the required one, also of another module or function if anywhere is true.
	Match func(p Probe, anywhere bool) bool
	// Name is the name that each matching probe has, "" if they may differ.
	Name string
	File string // that it is from, "" for the command line
	Line int    // there, from 1
}

// require finds the required probes that no site has. A site has the name that its own file gives it,
// which list prints, and the one that the probe's definition has, in whatever file it is. Where notes are lost, it
// is unknown which sites there were.
func (s *Set) require(known *knownNames) {
	if s.lostNotes {
		return
	}
	for i := range s.opts.Require {
		r := &s.opts.Require[i]
		if !slices.ContainsFunc(known.named(r.Name), func(p Probe) bool { return r.Match(p, false) }) {
			s.findings = append(s.findings, Finding{
				Rule: MissingProbe, Probe: r.Text, Message: known.missing(r), Source: r.File, Line: r.Line, file: len(s.files),
			})
		}
	}
}

// findUnlisted finds the probes that no line of a list of all probes matches, by neither of the names of their sites.
func (s *Set) findUnlisted(known *knownNames) {
	if len(s.opts.Only) == 0 {
		return
	}
	var names []string
	byName, others := map[string][]*Requirement{}, []*Requirement{}
	for i := range s.opts.Only {
		if r := &s.opts.Only[i]; r.Name == "" {
			others = append(others, r)
		} else {
			byName[r.Name] = append(byName[r.Name], r)
			names = append(names, r.Name)
		}
	}
	isListed := func(name Probe) bool {
		matches := func(r *Requirement) bool { return r.Match(name, false) }
		return slices.ContainsFunc(byName[name.Name], matches) || slices.ContainsFunc(others, matches)
	}
	found := map[Probe]bool{}
	for _, site := range s.sites {
		name := site.link.nameOf(site)
		if found[name] || isListed(name) || isListed(site.name) {
			continue
		}
		found[name] = true
		text := "a site has this probe, which is not listed"
		if known.budget -= len(names); known.budget >= 0 {
			if near := message.Nearest(name.Name, names); near != "" {
				text += "; did you mean " + near + "?"
			}
		}
		s.findings = append(s.findings, Finding{Rule: UnlistedProbe, Probe: name.String(), Message: text, file: len(s.files)})
	}
}

// knownNames are the names of the probes that have sites, in the order of the sites.
type knownNames struct {
	all    []Probe
	byName map[string][]Probe
	budget int // of names that suggestions may still look at
}

// maxSuggested bounds how many names suggestions look at, for all requirements: a list may have as many lines as a
// build has probes.
const maxSuggested = 200_000

func (s *Set) knownNames() *knownNames {
	known := &knownNames{byName: map[string][]Probe{}, budget: maxSuggested}
	seen := map[Probe]bool{}
	for _, site := range s.sites {
		for _, name := range []Probe{site.link.nameOf(site), site.name} {
			if !seen[name] {
				seen[name] = true
				known.all = append(known.all, name)
				known.byName[name.Name] = append(known.byName[name.Name], name)
			}
		}
	}
	return known
}

// named returns the probes of a name, or all of them.
func (k *knownNames) named(name string) []Probe {
	if name == "" {
		return k.all
	}
	return k.byName[name]
}

// missing returns the message about a required probe.
func (k *knownNames) missing(r *Requirement) string {
	const text = "no site has this probe, which is required: "
	var elsewhere []Probe
	for _, p := range k.named(r.Name) {
		if r.Match(p, true) {
			elsewhere = append(elsewhere, p)
		}
	}
	switch len(elsewhere) {
	case 0:
		return text + "its tracepoint was removed, or its record was lost" + k.suggest(r.Text)
	case 1:
		return text + "there, its tracepoint was removed, or its record was lost; it is left in " + elsewhere[0].String()
	}
	return text + fmt.Sprintf("there, its tracepoint was removed, or its record was lost; it is left in %v and %d more", elsewhere[0], len(elsewhere)-1)
}

// suggest returns what to add to the message about a required probe: the probe that was
// probably meant.
func (k *knownNames) suggest(required string) string {
	if k.budget -= len(k.all); k.budget < 0 {
		return ""
	}
	fields := strings.Split(required, ":")
	var candidates []string
	for _, name := range k.all {
		parts := []string{name.Provider, name.Module, name.Function, name.Name}
		for i := range parts {
			if i < len(fields) && fields[i] == "" {
				parts[i] = ""
			}
		}
		candidates = append(candidates, strings.Join(parts, ":"))
	}
	if near := message.Nearest(strings.ReplaceAll(required, "__", "-"), candidates); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

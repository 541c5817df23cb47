package probe

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sdtconvert/image"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/message"
	"sdtconvert/internal/sites"
)

// Census notes which probes the files of a run have, whether they are traced or not, so that a pattern without a probe can be explained. A
// nil one notes nothing.
type Census struct {
	Patterns []listing.Pattern
	Texts    []string // of Patterns, as the user has written them

	matched     map[int]bool
	names       map[[2]string]bool // provider and name
	unconverted []string           // files
}

// mostNames bounds the names that are kept for suggestions.
const mostNames = 1 << 14

// add notes a probe.
func (c *Census) add(p *listing.Probe) {
	if c == nil {
		return
	}
	if c.matched == nil {
		c.matched, c.names = map[int]bool{}, map[[2]string]bool{}
	}
	for i, pattern := range c.Patterns {
		if !c.matched[i] && pattern.Match(p.Provider, p.Module, p.Function, p.Name) {
			c.matched[i] = true
		}
	}
	if len(c.names) < mostNames {
		c.names[[2]string{p.Provider, p.Name}] = true
	}
}

// addUnconverted notes whether a file has tracepoints that no conversion has met.
func (c *Census) addUnconverted(m *image.Module) {
	if c == nil {
		return
	}
	if ids, err := sites.UnconvertedProbes(m.Object); err == nil && len(ids) > 0 {
		c.unconverted = append(c.unconverted, m.Object.Name)
	}
}

// Unmatched explains the patterns that have matched no probe.
func (c *Census) Unmatched() (lines []string) {
	for i := range c.Patterns {
		if !c.matched[i] {
			lines = append(lines, "no probe matches "+c.Texts[i]+c.suggest(c.Texts[i]))
		}
	}
	if len(lines) > 0 || len(c.names) == 0 {
		lines = append(lines, c.Unconverted()...)
	}
	return lines
}

// MissesPattern reports whether a pattern has matched no probe.
func (c *Census) MissesPattern() bool { return len(c.matched) < len(c.Patterns) }

// IsEmpty reports whether no file has a probe.
func (c *Census) IsEmpty() bool { return len(c.names) == 0 }

// HasProvider reports whether a file has a probe of a provider.
func (c *Census) HasProvider(provider string) bool {
	for name := range c.names {
		if name[0] == provider {
			return true
		}
	}
	return false
}

// Unconverted explains the files whose tracepoints are not converted.
func (c *Census) Unconverted() (lines []string) {
	slices.Sort(c.unconverted)
	for _, file := range slices.Compact(c.unconverted) {
		lines = append(lines, file+": has tracepoints that are not converted: "+sites.ConvertAdvice())
	}
	return lines
}

// suggest returns what to add to the message about a pattern: the probe that was probably meant.
func (c *Census) suggest(text string) string {
	fields := strings.Split(text, ":")
	name := strings.ReplaceAll(fields[len(fields)-1], "__", "-")
	var names, same []string
	for _, known := range slices.SortedFunc(maps.Keys(c.names), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	}) {
		shown := known[0] + ":::" + known[1]
		if names = append(names, known[1]); known[1] == name || known[1] == fields[0] {
			same = append(same, shown) // of another provider, or with too few colons
		}
	}
	near := message.Nearest(name, names)
	for known := range c.names {
		if len(same) == 0 && near != "" && known[1] == near {
			same = append(same, known[0]+":::"+near)
		}
	}
	if len(same) == 0 {
		return ""
	}
	return ": did you mean " + message.Escape(slices.Min(same)) + "?"
}

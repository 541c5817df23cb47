package listing

import (
	"fmt"
	"path"
	"strings"
)

// Pattern matches the four parts of a probe's name. A part that is "" matches
// anything, others are globs as dtrace(1) has them. Compile has to come before Match.
type Pattern struct{ Provider, Module, Function, Name string }

// Filter selects probes: those that match All, and any of Alternatives if there
// are some.
type Filter struct {
	All          Pattern
	Alternatives []Pattern
}

func (f *Filter) match(p *Probe) bool {
	if !f.All.Match(p.Provider, p.Module, p.Function, p.Name) {
		return false
	}
	for _, a := range f.Alternatives {
		if a.Match(p.Provider, p.Module, p.Function, p.Name) {
			return true
		}
	}
	return len(f.Alternatives) == 0
}

// Match reports whether a pattern matches the name of a probe.
func (t Pattern) Match(provider, module, function, name string) bool {
	return glob(t.Provider, provider) && glob(t.Module, module) && glob(t.Function, function) && glob(t.Name, name)
}

// glob matches a part that was compiled. To path.Match a slash is special, which
// it is not in the name of a probe.
func glob(part, s string) bool {
	if part == "" {
		return true
	}
	ok, err := path.Match(part, strings.ReplaceAll(s, "/", "\x00"))
	return ok && err == nil
}

// Compile writes the globs of dtrace(1) as path.Match has them, where [^...] is
// a class of what does not match. An error says which part is none.
func (t *Pattern) Compile() error {
	writer := strings.NewReplacer("/", "\x00", "[!", "[^")
	for _, part := range []*string{&t.Provider, &t.Module, &t.Function, &t.Name} {
		compiled := writer.Replace(*part)
		if _, err := path.Match(compiled, ""); err != nil {
			return fmt.Errorf("%q is not a glob", *part)
		}
		*part = compiled
	}
	return nil
}

// ParsePattern reads provider:module:function:name, and compiles it. As for
// dtrace(1), parts on the left may be missing.
func ParsePattern(s string) (Pattern, error) {
	parts := strings.Split(s, ":")
	if len(parts) > 4 {
		return Pattern{}, fmt.Errorf("%q has more than the four parts provider:module:function:name", s)
	}
	parts = append(make([]string, 4-len(parts)), parts...)
	t := Pattern{parts[0], parts[1], parts[2], parts[3]}
	return t, t.Compile()
}

package patch

// Which symbols are stubs is told by their names alone.

import (
	"cmp"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Names says which symbols are stubs. No string in it may be "". The longest prefix
// of a name counts, and of equals the one of is-enabled tests; a whole name counts
// only where no prefix does. Without any prefix or symbol it stands for DefaultNames.
type Names struct {
	Prefixes        []string // of probe calls; the probe id follows
	EnabledPrefixes []string // of is-enabled tests; the probe id follows
	Symbols         []string // whole names of probe calls, and their probe ids
}

// DefaultNames returns the stubs of the SDT(9) macros.
func DefaultNames() Names {
	return Names{Prefixes: []string{"__dtrace_probe_"}, EnabledPrefixes: []string{"__dtrace_isenabled_"}}
}

// matcher finds the stub that a symbol's name makes it.
type matcher struct {
	rules  []rule
	common string // what all of them begin with
}

// rule says of the names that begin with a text, or of the whole name, of which kind they are.
type rule struct {
	text  string
	kind  arch.Kind
	whole bool
}

// rules returns the rules of n, or of DefaultNames if it has no stubs of its own.
func (n Names) rules() []rule {
	if len(n.Symbols)+len(n.Prefixes)+len(n.EnabledPrefixes) == 0 {
		n = DefaultNames()
	}
	var rules []rule
	for _, name := range n.Symbols {
		rules = append(rules, rule{name, arch.Probe, true})
	}
	for kind, prefixes := range [...][]string{arch.Probe: n.Prefixes, arch.Enabled: n.EnabledPrefixes} {
		for _, p := range prefixes {
			rules = append(rules, rule{p, arch.Kind(kind), false})
		}
	}
	return rules
}

// newMatcher sorts the rules so that the first to match wins: the longest prefix,
// of equals the is-enabled one, and a whole name last.
func newMatcher(n Names) *matcher {
	rules, whole := n.rules(), len(n.Symbols)
	common := rules[0].text
	for _, r := range rules {
		for !strings.HasPrefix(r.text, common) {
			common = common[:len(common)-1]
		}
	}
	slices.SortStableFunc(rules[whole:], func(a, b rule) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(b.kind, a.kind))
	})
	return &matcher{slices.Concat(rules[whole:], rules[:whole]), common}
}

func (m *matcher) match(name string) (kind arch.Kind, id string, ok bool) {
	if !strings.HasPrefix(name, m.common) {
		return 0, "", false
	}
	for _, r := range m.rules {
		switch {
		case r.whole && name == r.text:
			return r.kind, name, true
		case !r.whole && len(name) > len(r.text) && strings.HasPrefix(name, r.text):
			return r.kind, name[len(r.text):], true
		}
	}
	return 0, "", false
}

// IsStub reports whether a name is the name of a stub.
func (n Names) IsStub(name string) bool {
	_, _, ok := n.Match(name)
	return ok
}

// HasStub reports whether a symbol of an object has the name of a stub.
func (n Names) HasStub(o *elfreloc.Object) (bool, error) {
	syms, err := o.Symbols()
	if err != nil {
		return false, err
	}
	m := newMatcher(n)
	for i := 1; i < syms.Len(); i++ {
		if _, _, ok := m.match(syms.Name(i)); ok {
			return true, nil
		}
	}
	return false, nil
}

// Match finds out which stub a name makes a symbol, if any: its kind, and the ID of
// its probe.
func (n Names) Match(name string) (kind arch.Kind, id string, ok bool) {
	if !slices.ContainsFunc(n.rules(), func(r rule) bool { return strings.HasPrefix(name, r.text) }) {
		return 0, "", false // as most names
	}
	return newMatcher(n).match(name)
}

// StubTexts returns texts of which the names of an object's symbols contain at least one if it has a stub
// (elfreloc.Object.NamesContain), the likeliest first.
func (n Names) StubTexts() [][]byte {
	var out [][]byte
	for _, r := range n.rules() {
		out = append(out, []byte(r.text))
	}
	return out
}

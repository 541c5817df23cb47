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
	// Guards is what the symbols of semaphores begin with that guards read, mostly
	// GuardPrefix; "" where they are left alone. They are not stubs.
	Guards string
}

// DefaultNames returns the stubs of the SDT(9) macros.
func DefaultNames() Names {
	return Names{Prefixes: []string{"__dtrace_probe_"}, EnabledPrefixes: []string{"__dtrace_isenabled_"}}
}

// matcher finds the stub that a symbol's name makes it.
type matcher struct {
	whole    []string
	prefixes []prefix
	common   string // what all of them begin with
}

type prefix struct {
	text string
	kind arch.Kind
}

// newMatcher sorts the prefixes so that the first to match wins: the longest,
// and of equals the is-enabled one.
func newMatcher(n Names) *matcher {
	n = n.orDefault()
	m := &matcher{whole: n.Symbols}
	for kind, prefixes := range n.prefixes() {
		for _, p := range prefixes {
			m.prefixes = append(m.prefixes, prefix{p, arch.Kind(kind)})
		}
	}
	slices.SortFunc(m.prefixes, func(a, b prefix) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(b.kind, a.kind), cmp.Compare(a.text, b.text))
	})
	lists := n.lists()
	for i, s := range slices.Concat(lists[:]...) {
		if i == 0 {
			m.common = s
		}
		for !strings.HasPrefix(s, m.common) {
			m.common = m.common[:len(m.common)-1]
		}
	}
	return m
}

// prefixes returns the prefixes by kind.
func (n *Names) prefixes() [arch.Kinds][]string {
	return [...][]string{arch.Probe: n.Prefixes, arch.Enabled: n.EnabledPrefixes}
}

// orDefault returns n with the prefixes of DefaultNames if it has no stubs of its own.
func (n Names) orDefault() Names {
	for _, list := range n.lists() {
		if len(list) > 0 {
			return n
		}
	}
	d := DefaultNames()
	n.Prefixes, n.EnabledPrefixes = d.Prefixes, d.EnabledPrefixes
	return n
}

// lists returns all strings of n that are of stubs, the whole names first.
func (n *Names) lists() [1 + arch.Kinds][]string {
	lists, prefixes := [1 + arch.Kinds][]string{n.Symbols}, n.prefixes()
	copy(lists[1:], prefixes[:])
	return lists
}

func (m *matcher) match(name string) (kind arch.Kind, id string, ok bool) {
	if !strings.HasPrefix(name, m.common) {
		return 0, "", false
	}
	for _, p := range m.prefixes {
		if len(name) > len(p.text) && strings.HasPrefix(name, p.text) {
			return p.kind, name[len(p.text):], true
		}
	}
	if slices.Contains(m.whole, name) {
		return arch.Probe, name, true
	}
	return 0, "", false
}

// IsStub reports whether a name is that of a stub.
func (n Names) IsStub(name string) bool {
	_, _, ok := n.Match(name)
	return ok
}

// HasStub reports whether a symbol of an object has the name of a stub, or of a semaphore
// that guards read.
func (n Names) HasStub(o *elfreloc.Object) (bool, error) {
	syms, err := o.Symbols()
	if err != nil {
		return false, err
	}
	n = n.orDefault()
	for i := 1; i < syms.Len(); i++ {
		name := syms.Name(i)
		if n.IsStub(name) || n.Guards != "" && strings.HasPrefix(name, n.Guards) {
			return true, nil
		}
	}
	return false, nil
}

// Match finds out which stub a name makes a symbol, if any: its kind, and the ID of
// its probe.
func (n Names) Match(name string) (kind arch.Kind, id string, ok bool) {
	n = n.orDefault()
	for _, list := range n.lists() {
		for _, p := range list {
			if strings.HasPrefix(name, p) { // few names get here
				return newMatcher(n).match(name)
			}
		}
	}
	return 0, "", false
}

// StubTexts returns texts of which the names of an object's symbols contain at least one if it has a stub or a guard
// (elfreloc.Object.NamesContain), the likeliest first.
func (n Names) StubTexts() [][]byte {
	n = n.orDefault()
	var out [][]byte
	for _, list := range n.lists() {
		for _, s := range list {
			out = append(out, []byte(s))
		}
	}
	if n.Guards != "" {
		out = append(out, []byte(n.Guards))
	}
	return out
}

package patch

import (
	"testing"

	"sdtconvert/arch"
)

func TestMatch(t *testing.T) {
	names := Names{
		Prefixes:        []string{"__dtrace_", "__dtrace_sdt_", "both_"},
		EnabledPrefixes: []string{"__dtrace_isenabled_", "both_"},
		Symbols:         []string{"__fentry__", "__dtrace_whole"},
	}
	m := newMatcher(names)
	for _, c := range []struct {
		name string
		kind arch.Kind
		id   string // "" for no stub
	}{
		{"__dtrace_a", arch.Probe, "a"},
		{"__dtrace_sdt_a", arch.Probe, "a"},
		{"__dtrace_isenabled_a", arch.Enabled, "a"},
		{"both_a", arch.Enabled, "a"},
		{"__fentry__", arch.Probe, "__fentry__"},
		{"__dtrace_whole", arch.Probe, "whole"}, // the prefix comes first
		{"__dtrace_sdt_", arch.Probe, "sdt_"},   // an id is never empty
		{"__dtrace_", 0, ""},
		{"__fentry__2", 0, ""},
		{"a__dtrace_a", 0, ""},
		{"", 0, ""},
	} {
		kind, id, ok := m.match(c.name)
		if ok != (c.id != "") || kind != c.kind || id != c.id {
			t.Errorf("%q: got %v %q %v", c.name, kind, id, ok)
		}
	}
}

func TestEveryStubHasANeedle(t *testing.T) {
	names := Names{Prefixes: []string{"p"}, EnabledPrefixes: []string{"e"}, Symbols: []string{"s"}}
	got := ""
	for _, n := range names.StubTexts() {
		got += string(n) + " "
	}
	if got != "s p e " {
		t.Errorf("got %s", got)
	}
}

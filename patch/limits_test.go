package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/resolve"
)

// Names are counted at each use, references and stubs by their number.
func TestLimits(t *testing.T) {
	o := &elfreloc.Object{Name: "a.o", Sections: []elfreloc.Section{{}, {Name: ".rela.text"}}}
	rs := &elfreloc.RelocSection{Index: 1}
	for _, c := range []struct {
		what, want string
		count      func(l *limits) error
	}{
		{"a long name", "has a name of 16385 bytes", func(l *limits) error { return l.stub(o, strings.Repeat("x", maxStubName+1)) }},
		{"names of many stubs", "16 times as many bytes as the object", func(l *limits) error { return l.stub(o, strings.Repeat("x", maxStubName)) }},
		{"a name that is used often", "16 times as many bytes as the object", func(l *limits) error {
			return l.reference(o, rs, &Stub{Name: strings.Repeat("x", 100)})
		}},
		{"references", ".rela.text: more than 1048576 references", func(l *limits) error { return l.reference(o, rs, nil) }},
		{"stubs", "more than 131072 stubs", func(l *limits) error { return l.stub(o, "s") }},
	} {
		l := newLimits(o)
		var err error
		for range maxReferences + 1 {
			if err = c.count(&l); err != nil {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "a.o: ") {
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
	}
}

// Of many refusals the last tells how many more there are.
func TestManyRefusals(t *testing.T) {
	p := &planner{Plan: &Plan{}}
	cause := errors.New("no call")
	for range maxRefused + 5 {
		p.refuse(&Reference{}, cause)
	}
	p.countOmitted()
	last := p.Refused[len(p.Refused)-1].Err
	if len(p.Refused) != maxRefused || !errors.Is(last, cause) || fmt.Sprint(last) != "no call; 5 more references cannot be converted either" {
		t.Errorf("%d refusals, the last %v", len(p.Refused), last)
	}
}

// TestMappingsOfOnePlace sorts mapping symbols: by offset, and data before code, which counts.
func TestMappingsOfOnePlace(t *testing.T) {
	data, code, thumb := arch.Mapping{Encoding: arch.Data}, arch.Mapping{Encoding: 'x'}, arch.Mapping{Encoding: 't'}
	later := arch.Mapping{Offset: 4, Encoding: arch.Data}
	for _, c := range []struct{ in, want []arch.Mapping }{
		{[]arch.Mapping{code, data}, []arch.Mapping{data, code}},
		{[]arch.Mapping{data, code}, []arch.Mapping{data, code}},
		{[]arch.Mapping{code, thumb}, []arch.Mapping{code, thumb}},
		{[]arch.Mapping{later, thumb, data}, []arch.Mapping{data, thumb, later}},
		{[]arch.Mapping{later, code, data, thumb}, []arch.Mapping{data, code, thumb, later}},
	} {
		got := slices.Clone(c.in)
		sortStable(got, compareMappings)
		expect.Equal(t, c.want, got, "%v", c.in)
	}
}

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

// clang names a function's own probe object after the function, as the symbol or
// the source has it: clones and parts of the function use it too.
func TestChooseLocalProbe(t *testing.T) {
	candidates := []localObject{
		{symbol: 1, function: "f", file: 9}, {symbol: 2, function: "g", file: 9},
		{symbol: 3, function: "_ZL1hi.__uniq.12", file: 9}, {symbol: 4, function: "g", file: 21},
	}
	f := &ProbeObjects{files: []int{9, 21}, firstGlobal: 30}
	for _, c := range []struct {
		function resolve.Function
		want     int
	}{
		{resolve.Function{Name: "f", Raw: "f", Symbol: 20}, 1},
		{resolve.Function{Name: "g", Raw: "g", Symbol: 20}, 2},
		{resolve.Function{Name: "g", Raw: "g.cold.1", Symbol: 20}, 2},
		{resolve.Function{Name: "g", Raw: "g.llvm.17", Symbol: 21}, 4},
		{resolve.Function{Name: "h", Raw: "_ZL1hi.__uniq.12", Symbol: 20}, 3},
		{resolve.Function{Name: "other", Raw: "other", Symbol: 20}, 1}, // the first of its file
		{resolve.Function{Name: "other", Raw: "other", Symbol: 21}, 4},
	} {
		if got := f.choose(c.function, candidates); got == nil || got.symbol != c.want {
			t.Errorf("%s: got %+v, want %d", c.function.Raw, got, c.want)
		}
	}
	if got := f.choose(resolve.Function{}, candidates); got != nil {
		t.Errorf("without a function: got %+v", got)
	}
}

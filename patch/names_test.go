package patch

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/testkit/expect"
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

func TestPrototypes(t *testing.T) {
	const text = `# of the network
void __dtrace_probe_tcp___send(struct tcpcb *, int, unsigned char);

// by its id
tcp___drop(int reason, const char *why, void (*f)(int, long), size_t n)
extern void idle(void);
void* none( ) ;
`
	p := expect.Value(ReadPrototypes(strings.NewReader(text), "p.h"))(t)
	m := amd64.Machine{}
	for id, want := range map[string]string{
		"tcp___send": "8@%rdi -4@%esi 1@%dl",
		"tcp___drop": "-4@%edi 8@%rsi 8@%rdx 8@%rcx",
		"idle":       "", "none": "",
	} {
		types, ok := p.types(&Stub{Name: "__dtrace_probe_" + id, ID: id}, m)
		if diff := cmp.Diff(want, stapsdt.Operands(m, arch.Call, elf.ELFDATA2LSB, types)); !ok || diff != "" {
			t.Errorf("%s: %t %s", id, ok, diff)
		}
	}
	expect.Equal(t, []string{"int reason", "const char *why", "void (*f)(int, long)", "size_t n"}, p["tcp___drop"])
	if _, ok := p.types(&Stub{Name: "__dtrace_probe_other", ID: "other"}, m); ok {
		t.Error("a declaration of something else")
	}
}

func TestPrototypesThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		"int":             `p.h:1: got "int", want a declaration: name(type, ...);`,
		"\nf(int":         `p.h:2: got "f(int", want a declaration: name(type, ...);`,
		"(int)":           `p.h:1: a declaration without a name`,
		"void 1f(int)":    `p.h:1: "1f" is not a name`,
		"f(int,)":         `p.h:1: parameter 2: "" is not known as an integer or a pointer; write what it stands for`,
		"f(double)":       `p.h:1: parameter 1: "double" is not known as an integer or a pointer; write what it stands for`,
		"f(struct s)":     `p.h:1: parameter 1: "struct s" is not known as an integer or a pointer; write what it stands for`,
		"f(long double)":  `p.h:1: parameter 1: "long double" is not known as an integer or a pointer; write what it stands for`,
		"f(int, ...)":     `p.h:1: parameter 2: "..." is not known as an integer or a pointer; write what it stands for`,
		"f(int x y)":      `p.h:1: parameter 1: "int x y" is not known as an integer or a pointer; write what it stands for`,
		"f(int))":         `p.h:1: parentheses do not match`,
		"f(int ((*)())":   `p.h:1: parentheses do not match`,
		"f(int)\nf(long)": `p.h:2: "f" is declared in line 1 already`,
		"f(int) g(int)":   `p.h:1: parentheses do not match`,
	} {
		expect.Equal(t, want, expect.Failure(ReadPrototypes(strings.NewReader(text), "p.h")), "%q", text)
	}
}

func FuzzPrototypes(f *testing.F) {
	f.Add("void f(int, char *);")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadPrototypes(strings.NewReader(text), "p.h")
		if err != nil {
			return
		}
		m := amd64.Machine{}
		for name := range p {
			types, ok := p.types(&Stub{Name: name}, m)
			if stapsdt.Operands(m, arch.Call, elf.ELFDATA2LSB, types); !ok {
				t.Errorf("%q is not found", name)
			}
		}
	})
}

// TestNamesOfPrototypes compares names of two bytes with the identifiers of GNU C, whose letters
// may be those of other scripts.
func TestNamesOfPrototypes(t *testing.T) {
	begins, digits := map[byte]bool{}, map[byte]bool{}
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$") {
		begins[c] = true
	}
	for c := range 128 {
		begins[byte(128+c)] = true
	}
	for _, c := range []byte("0123456789") {
		digits[c] = true
	}
	for first := range 256 {
		for second := range 256 {
			a, b := byte(first), byte(second)
			if got, want := isName(string([]byte{a, b})), begins[a] && (begins[b] || digits[b]); got != want {
				t.Errorf("%q is a name: %v", []byte{a, b}, got)
			}
		}
	}
}

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
	p.sumUp()
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

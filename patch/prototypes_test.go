package patch

import (
	"debug/elf"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/testkit/expect"
)

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

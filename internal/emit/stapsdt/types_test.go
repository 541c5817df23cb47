package stapsdt

import (
	"debug/elf"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
)

func machine(m elf.Machine) arch.Machine {
	return machines.Lookup(m, elf.ELFCLASS64, elf.ELFDATA2LSB, 0)
}

func TestTypesByTheirNames(t *testing.T) {
	amd64, arm64 := machine(elf.EM_X86_64), machine(elf.EM_AARCH64)
	for _, c := range []struct {
		name string
		want string // on amd64
	}{
		{"int", "-4@%edi"},
		{"unsigned", "4@%edi"},
		{"long unsigned int", "8@%rdi"},
		{"long long", "-8@%rdi"},
		{"const volatile short", "-2@%di"},
		{"unsigned char", "1@%dil"},
		{"char", "-1@%dil"},
		{"_Bool", "1@%dil"},
		{"enum colour", "4@%edi"},
		{"uint16_t", "2@%di"},
		{"struct icmp *", "8@%rdi"},
		{"char const[16]", "8@%rdi"},
		{"void (*)(int)", "8@%rdi"},
		{"struct vnode", "8@%rdi"},
		{"vnode_t", "8@%rdi"},
		{"", "8@%rdi"},
	} {
		if got := Operands(amd64, arch.Call, []Type{Native(c.name, amd64)}); got != c.want {
			t.Errorf("%q: got %s, want %s", c.name, got, c.want)
		}
	}
	if got := Operands(arm64, arch.Call, []Type{Native("char", arm64), Native("int", arm64)}); got != "1@x0 -4@x1" {
		t.Errorf("arm64: got %s", got)
	}
}

func TestOperandsEndWhereRegistersDo(t *testing.T) {
	m := machine(elf.EM_X86_64)
	if got, want := Operands(m, arch.Call, make9(8)), "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	types := make9(4)
	types[2].Size = 0 // a double, for one
	if got, want := Operands(m, arch.Call, types), "4@%edi 4@%esi"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Operands(m, arch.Call, nil); got != "" {
		t.Errorf("got %s", got)
	}
}

func make9(size int) []Type {
	types := make([]Type, 9)
	for i := range types {
		types[i].Size = size
	}
	return types
}

func TestPrototypes(t *testing.T) {
	const text = `# of the network
void __dtrace_probe_tcp___send(struct tcpcb *, int, unsigned char);

// by its id
tcp___drop(int reason, const char *why, void (*f)(int, long), size_t n)
extern void idle(void);
void* none( ) ;
`
	p, err := ReadPrototypes(strings.NewReader(text), "p.h")
	if err != nil {
		t.Fatal(err)
	}
	m := machine(elf.EM_X86_64)
	for id, want := range map[string]string{
		"tcp___send": "8@%rdi -4@%esi 1@%dl",
		"tcp___drop": "-4@%edi 8@%rsi 8@%rdx 8@%rcx",
		"idle":       "", "none": "",
	} {
		types, ok := p.Types(m, "__dtrace_probe_"+id, id)
		if diff := cmp.Diff(want, Operands(m, arch.Call, types)); !ok || diff != "" {
			t.Errorf("%s: %t %s", id, ok, diff)
		}
	}
	if _, ok := p.Types(m, "__dtrace_probe_other", "other"); ok {
		t.Error("a declaration of something else")
	}
}

func TestPrototypesThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		"int":             `p.h:1: got "int", want a declaration: name(type, ...);`,
		"\nf(int":         `p.h:2: got "f(int", want a declaration: name(type, ...);`,
		"(int)":           `p.h:1: a declaration without a name`,
		"void 1f(int)":    `p.h:1: "1f" is no name`,
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
		_, err := ReadPrototypes(strings.NewReader(text), "p.h")
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzPrototypes(f *testing.F) {
	f.Add("void f(int, char *);")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadPrototypes(strings.NewReader(text), "p.h")
		if err != nil {
			return
		}
		m := machine(elf.EM_X86_64)
		for name := range p {
			types, ok := p.Types(m, name, "")
			if Operands(m, arch.Call, types); !ok {
				t.Errorf("%q is not found", name)
			}
		}
	})
}

// ilp32 is a machine whose words are of 4 bytes.
type ilp32 struct{ arch.Machine }

func (m ilp32) Traits() *arch.Traits {
	t := *m.Machine.Traits()
	t.Model, t.CharUnsigned = arch.ILP32, true
	return &t
}

func TestTypesOfADataModel(t *testing.T) {
	m := ilp32{machine(elf.EM_X86_64)}
	for name, want := range map[string]Type{
		"long": {4, true}, "unsigned long int": {4, false}, "u_long": {4, false}, "long long": {8, true}, "int64_t": {8, true},
		"size_t": {4, false}, "time_t": {4, true}, "char *": {4, false}, "vnode_t": {4, false}, "char": {1, false}, "short": {2, true},
	} {
		if got := Native(name, m); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if got := Words(m); len(got) != 6 || got[0] != (Type{Size: 4}) {
		t.Errorf("got %+v", got)
	}
}

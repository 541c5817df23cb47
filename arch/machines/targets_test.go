package machines

import (
	"debug/elf"
	"testing"
)

// Each machine is the target of its name, or has the name of one that is, and a name stands
// for one target.
func TestTargets(t *testing.T) {
	for _, m := range All() {
		abi, ok := Target(m.Traits().Name + "-unknown-linux-gnu")
		if found := Lookup(abi); !ok || found == nil || found.Traits().Name != m.Traits().Name {
			t.Errorf("%s: %+v, %v", m.Traits().Name, abi, ok)
		}
	}
	seen := map[string]bool{}
	for i := range targets {
		for _, name := range targets[i].names {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if n := targets[i].narrow; n != "" {
			if abi, ok := Target(n); !ok || abi.Class != elf.ELFCLASS32 {
				t.Errorf("%s is not a target of 32 bits", n)
			}
		}
	}
	if _, ok := Target("pdp11-dec-unix"); ok {
		t.Error("an unknown machine is a target")
	}
}

func TestOfClass(t *testing.T) {
	for _, c := range []struct {
		from  string
		class elf.Class
		to    string
	}{
		{"x86_64", elf.ELFCLASS32, "i386"}, {"i386", elf.ELFCLASS64, "x86_64"}, {"x86_64", elf.ELFCLASS64, "x86_64"},
		{"aarch64", elf.ELFCLASS32, "arm"}, {"arm", elf.ELFCLASS64, "aarch64"},
		{"s390x", elf.ELFCLASS32, ""}, {"riscv64", elf.ELFCLASS32, ""},
	} {
		from, _ := Target(c.from)
		want, wantOK := Target(c.to)
		if got, ok := OfClass(from, c.class); got != want || ok != wantOK {
			t.Errorf("%s of %v: %+v, %v", c.from, c.class, got, ok)
		}
	}
}

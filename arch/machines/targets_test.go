package machines

import (
	"cmp"
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

// A format of linker scripts is that of each machine, and the one that FreeBSD has for it.
func TestFormats(t *testing.T) {
	for _, m := range All() {
		want := m.Traits().ABIs[0]
		found := false
		for name := range formats {
			abi, ok := OfFormat(name + "-freebsd")
			found = found || ok && want.Matches(abi.Machine, abi.Class, cmp.Or(want.Data, abi.Data), want.Flags)
		}
		if !found {
			t.Errorf("%s: no format is that of %+v", m.Traits().Name, want)
		}
	}
	if _, ok := OfFormat("binary"); ok {
		t.Error("no ELF")
	}
}

package machines

import (
	"cmp"
	"debug/elf"
	"math/rand/v2"
	"testing"

	"sdtconvert/arch"
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

// Code may be anything, and end anywhere. What is told lies in the range that was asked for,
// and of instructions in the code.
func TestReadsOfAnyCode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	code := make([]byte, 1<<14)
	for i := range code {
		code[i] = byte(random.Uint32())
	}
	for _, m := range supported {
		reader, ok := m.(arch.Reader)
		if !ok {
			continue
		}
		const pc, lo, hi = 0x10000, 0x8000, 0x40000
		check := func(at, address uint64) {
			if at < pc || at >= pc+uint64(len(code)) || address < lo || address >= hi {
				t.Errorf("%s: %#x reads %#x", m.Traits().Name, at, address)
			}
		}
		for n := range 256 {
			reader.Reads(code[:n], pc, 0x20000, lo, hi, check)
		}
		reader.Reads(code, pc, 0x20000, lo, hi, check)
		reader.Reads(code, pc, 0x20000, hi, lo, func(at, address uint64) { t.Errorf("%s: an empty range has %#x", m.Traits().Name, address) })
	}
}

package object

import (
	"bytes"
	"debug/elf"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

func providers() []*provider.Provider {
	return []*provider.Provider{
		{Name: "shop", Probes: []*provider.Probe{{Name: "order__placed"}, {Name: "sent"}}},
		{Name: "empty"},
		{Name: "Bank", Probes: []*provider.Probe{{Name: "paid"}}},
	}
}

func write(t *testing.T, target *Target, all []*provider.Provider, shared bool) *elf.File {
	t.Helper()
	data := expect.Value(target.Write(all, shared))(t)
	again, err := target.Write(all, shared)
	if err != nil || !bytes.Equal(data, again) {
		t.Fatalf("%v, or other bytes", err)
	}
	return disk.ELF(t, data)
}

// check looks at an object of the three probes.
func check(t *testing.T, f *elf.File, visibility elf.SymVis) {
	t.Helper()
	probes := f.Section(".probes")
	if probes == nil || probes.Addralign != 4096 || probes.Flags != elf.SHF_ALLOC|elf.SHF_WRITE || probes.Size != 12 || probes.Type != elf.SHT_PROGBITS {
		t.Fatalf("%+v", probes)
	}
	expect.Equal(t, make([]byte, 12), expect.Value(probes.Data())(t))
	if s := f.Section(".note.GNU-stack"); s == nil || s.Flags != 0 {
		t.Errorf("%+v", s)
	}
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 {
			t.Errorf("%s has code", s.Name)
		}
	}
	syms := expect.Value(f.Symbols())(t)
	want := map[string]uint64{"shop_order__placed_semaphore": 0, "shop_sent_semaphore": 4, "Bank_paid_semaphore": 8}
	for _, s := range syms {
		if elf.ST_BIND(s.Info) == elf.STB_LOCAL {
			continue
		}
		at, ok := want[s.Name]
		if !ok || s.Value != at || s.Size != 2 || s.Info != elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT) || elf.ST_VISIBILITY(s.Other) != visibility {
			t.Errorf("%+v", s)
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestOfTargets(t *testing.T) {
	for _, name := range []string{
		"x86_64", "i686", "aarch64", "aarch64_be", "armv7l", "riscv64", "ppc64le", "powerpc64", "powerpc", "s390x", "loongarch64",
	} {
		abi, ok := machines.Target(name)
		if !ok {
			t.Fatal(name)
		}
		target := &Target{}
		expect.OK(t, target.Name(name+"-unknown-linux-gnu", nil))
		f := write(t, target, providers(), false)
		if f.Machine != abi.Machine || f.Class != abi.Class || f.Data != abi.Data || f.Type != elf.ET_REL {
			t.Errorf("%s: %+v", name, f.FileHeader)
		}
		check(t, f, elf.STV_HIDDEN)
		promises := machines.Lookup(abi)
		if has := f.Section(".note.gnu.property") != nil; has != (promises != nil && promises.Traits().Features.Supported != 0) {
			t.Errorf("%s: promises: %v", name, has)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		name, flags string
		want        string
	}{
		{"amd64", "-O2 -m32", "EM_386"}, {"i386", "-m64", "EM_X86_64"}, {"x86_64-linux-gnu", "-m32 -m64", "EM_X86_64"},
		{"riscv64", "-m32", "-m32: unknown machine for riscv64; give an object of the link"},
		{"vax-dec", "", "the machine of vax-dec is not known; give an object of the link"},
	} {
		target := &Target{}
		err := target.Name(c.name, strings.Fields(c.flags))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = target.empty.Machine.String()
		}
		expect.Equal(t, c.want, got, "%s %s", c.name, c.flags)
	}
}

func TestNothingToDefine(t *testing.T) {
	target := &Target{}
	expect.OK(t, target.Name("amd64", nil))
	f := write(t, target, nil, false)
	if f.Section(".probes") != nil {
		t.Error("semaphores of no probe")
	}
	check(t, write(t, target, providers(), true), elf.STV_DEFAULT)
}

// file writes one of the committed objects.
func file(t *testing.T, name string, change func(b []byte)) string {
	t.Helper()
	data := bytes.Clone(objects.Read(t, name))
	if change != nil {
		change(data)
	}
	path := filepath.Join(t.TempDir(), name)
	disk.Write(t, path, data)
	return path
}

func TestOfObjects(t *testing.T) {
	for name, want := range map[string]elfreloc.ABI{
		"calls.amd64-gcc12-O2.o":     {Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB},
		"calls.arm64be-clang19-O2.o": {Machine: elf.EM_AARCH64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB},
		"calls.loong64-clang19-O2.o": {Machine: elf.EM_LOONGARCH, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Flags: 0x43},
		"calls.riscv64-gcc12-O2.o":   {Machine: elf.EM_RISCV, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Flags: 5},
	} {
		text := filepath.Join(t.TempDir(), "a.lo")
		disk.Write(t, text, "# a.lo - a libtool object file\n")
		target := &Target{}
		for _, path := range []string{text, file(t, name, nil)} {
			expect.OK(t, target.Add(path))
		}
		expect.Equal(t, want, target.empty.ABI(), "%s", name)
		check(t, write(t, target, providers(), false), elf.STV_HIDDEN)
	}
}

func TestRefused(t *testing.T) {
	const one = "calls.amd64-gcc12-O2.o"
	osabi := func(b []byte) { b[elf.EI_OSABI] = byte(elf.ELFOSABI_FREEBSD) }
	linked := func(b []byte) { b[16] = byte(elf.ET_DYN) }
	for _, c := range []struct {
		paths []string
		want  string
		of    System
	}{
		{[]string{file(t, one, nil), file(t, "calls.arm64-gcc12-O2.o", nil)}, "they are not of one link", Linux},
		{[]string{file(t, one, nil), file(t, one, osabi)}, "does not say so: they are not of one link, unless --target says FreeBSD", Linux},
		{[]string{file(t, one, osabi)}, "is of FreeBSD, and the link of illumos", Illumos},
		{[]string{file(t, one, linked)}, "is linked, and not an object", Linux},
		{[]string{filepath.Join(t.TempDir(), "none.o")}, "no such file", Linux},
		{[]string{"object_test.go"}, "object_test.go: is source code, and not an object; compile it first", Linux},
		{[]string{"object_test.go"}, "object_test.go: is source code, and not an object; compile it first", FreeBSD},
	} {
		target := &Target{System: c.of}
		var err error
		for _, path := range c.paths {
			if err = target.Add(path); err != nil {
				break
			}
		}
		expect.Error(t, err, c.want, "%q", c.paths)
	}
}

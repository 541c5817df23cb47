package output

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
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

func TestTargetNames(t *testing.T) {
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
		of    provider.System
	}{
		{[]string{file(t, one, nil), file(t, "calls.arm64-gcc12-O2.o", nil)}, "they are not of one link", provider.Linux},
		{[]string{file(t, one, nil), file(t, one, osabi)}, "does not say so: they are not of one link, unless --target says FreeBSD", provider.Linux},
		{[]string{file(t, one, osabi)}, "is of FreeBSD, and the link of illumos", provider.Illumos},
		{[]string{file(t, one, linked)}, "is linked, and not an object", provider.Linux},
		{[]string{filepath.Join(t.TempDir(), "none.o")}, "no such file", provider.Linux},
		{[]string{"object_test.go"}, "object_test.go: is source code, and not an object; compile it first", provider.Linux},
		{[]string{"object_test.go"}, "object_test.go: is source code, and not an object; compile it first", provider.FreeBSD},
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

// assembled returns an object of amd64.
func assembled(t *testing.T, text string) string {
	t.Helper()
	tools.Need(t, "as")
	path := filepath.Join(t.TempDir(), "drti.s")
	disk.Write(t, path, text)
	tools.Must(t, "as", "--64", "-o", path+".o", path)
	return path + ".o"
}

func freebsd(t *testing.T) *Target {
	t.Helper()
	target := &Target{System: provider.FreeBSD}
	expect.OK(t, target.Name("x86_64-unknown-freebsd", nil))
	return target
}

func one() []dof.Provider {
	return []dof.Provider{{Name: "p", Probes: []dof.Probe{{Name: "x", Functions: []dof.Function{{Name: "f", Symbol: "$dtrace1.f", Offsets: []uint32{3}}}}}}}
}

// What is hidden in drti becomes local, what it needs of others stays, and what it
// registers is the format.
func TestDrtiIsPartOfTheObject(t *testing.T) {
	d := DOF{Providers: one()}
	expect.OK(t, d.OpenDrti(assembled(t, ".globl shown, kept\n.hidden kept\nshown: call kept\ncall other\nkept: lea __SUNW_dof(%rip), %rax\nret\n")))
	target := freebsd(t)
	expect.OK(t, target.CheckDOF(d))
	data := expect.Value(target.WriteDOF(d))(t)
	f := disk.ELF(t, data)
	syms := expect.Value(f.Symbols())(t)
	got := map[string]string{}
	for _, s := range syms {
		if s.Name != "" && s.Section != elf.SHN_ABS {
			got[s.Name] += strings.TrimPrefix(elf.ST_BIND(s.Info).String(), "STB_") + " " + f.Sections[s.Section].Name
		}
	}
	for name, want := range map[string]string{"shown": "GLOBAL .text", "kept": "LOCAL .text", "__SUNW_dof": "LOCAL .SUNW_dof", "other": "GLOBAL ", "$dtrace1.f": "GLOBAL "} {
		expect.Equal(t, want, got[name], "%s", name)
	}
	// Nothing but what drti holds itself if there is nothing to register.
	if data, err := target.WriteDOF(DOF{Drti: d.Drti}); err != nil || bytes.Contains(data, []byte("shown")) {
		t.Errorf("without providers: %v", err)
	}
}

func TestUselessDrti(t *testing.T) {
	arm64 := filepath.Join(objects.Directory(), "calls.arm64-gcc12-O2.o")
	for path, want := range map[string]string{
		assembled(t, "nop\n"):                                "does not register __SUNW_dof",
		assembled(t, ".globl __SUNW_dof\n__SUNW_dof: nop\n"): "defines __SUNW_dof, which is what it is to register",
		arm64: "is not an object of EM_X86_64, ELFCLASS64",
	} {
		d := DOF{}
		expect.OK(t, d.OpenDrti(path))
		expect.Equal(t, path+": "+want, fmt.Sprint(freebsd(t).CheckDOF(d)))
	}
	d := DOF{}
	expect.OK(t, d.OpenDrti(assembled(t, "lea ___SUNW_dof(%rip), %rax\n")))
	d.Lazy = true
	expect.OK(t, freebsd(t).CheckDOF(d))
}

// What Write and WriteDOF make is recognised, and what anything else makes is not, even of it.
func TestIsOwn(t *testing.T) {
	directory := t.TempDir()
	check := func(what string, data []byte, want bool) string {
		t.Helper()
		path := filepath.Join(directory, "x.o")
		disk.Write(t, path, data)
		expect.Equal(t, want, IsOwnObject(path), "%s", what)
		return path
	}
	for _, system := range []provider.System{provider.Linux, provider.FreeBSD, provider.Illumos} {
		target := &Target{System: system}
		expect.OK(t, target.Name("x86_64", nil))
		semaphores := expect.Value(target.Write(providers(), false))(t)
		check("semaphores", semaphores, true)
		withCode := DOF{Providers: one()}
		expect.OK(t, withCode.OpenDrti(assembled(t, ".file \"drti.c\"\nlea __SUNW_dof(%rip), %rax\n")))
		for _, d := range []DOF{{}, {Providers: one()}, {Providers: one(), Lazy: true}, withCode} {
			check(system.String(), expect.Value(target.WriteDOF(d))(t), true)
		}
		tools.Need(t, "ld")
		path := check("semaphores", semaphores, true)
		for _, with := range []string{"\tnop\n", "\t.data\n\t.long 1\n\t.file \"a.c\"\n"} {
			joined := filepath.Join(directory, "joined.o")
			tools.Must(t, "ld", "-r", "-o", joined, path, assembled(t, with))
			check("linked with another", disk.Read(t, joined), false)
		}
	}
	check("compiled", objects.Read(t, "calls.amd64-gcc12-O2.o"), false)
	check("text", []byte("int main;\n"), false)
	check("empty", nil, false)
}

package image_test

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestObject reads the fields that TestWords reads of linked images.
func TestObject(t *testing.T) {
	for _, m := range toolchains.Machines {
		for cc, flag := range map[toolchains.Compiler]string{toolchains.GCC: "-fPIC", toolchains.Clang: "-fno-pic"} {
			t.Run(m.Name+"/"+m.CC(cc)[0], func(t *testing.T) {
				t.Parallel()
				command := append(m.CC(cc), flag)
				tools.Need(t, command[0])
				path := filepath.Join(t.TempDir(), "words.o")
				if cc.Clang && !m.Native() {
					command = append(command, "-I"+m.Sysroot()+"/include")
				}
				command = append(command, "-O", "-c", "-DELSEWHERE", "-o", path, source(t, "words.c"))
				tools.Output(t, command[0], command[1:]...)
				checkObject(t, open(t, path), tools.OpenELF(t, path).Encoding.Word())
			})
		}
	}
}

func checkObject(t *testing.T, im image.Image, word int) {
	t.Helper()
	for section, want := range names {
		ranges, err := im.Arrays(section)
		if err != nil || len(ranges) != 1 || ranges[0].Name != section || ranges[0].Writable != (section != "sdt_instances_rel") {
			t.Fatalf("%s: %v, %v", section, ranges, err)
		}
		start := ranges[0].Start
		expect.Equal(t, section+"+0x10", im.Place(start.Add(16)), "Place")
		for i, name := range want {
			read, size := im.Word, word
			if section == "sdt_instances_rel" {
				read, size = im.Distance, 4
			}
			ref, err := read(start.Add(uint64(i * size)))
			if err != nil {
				t.Errorf("%s %d: %v", section, i, err)
				continue
			}
			checkObjectRef(t, im, fmt.Sprintf("%s %d", section, i), ref, name)
		}
	}
}

func checkObjectRef(t *testing.T, im image.Image, what string, ref image.Ref, name string) {
	t.Helper()
	switch {
	case ref.Undefined:
		if outer := strings.HasPrefix(what, "outer_set") && ref.Symbol == "sdt_elsewhere"; !outer && ref.Symbol != "sdt_nowhere" {
			t.Errorf("%s: %+v", what, ref)
		}
		return
	case name == "0":
		if ref.Symbol != "" || ref.Section != 0 || ref.Offset != 0 && ref.Offset != 0x1234 || ref.Null() != (ref.Offset == 0) {
			t.Errorf("%s: %+v, want a number", what, ref)
		}
		return
	}
	all, err := im.SymbolsAt(ref.Addr)
	if err != nil || ref.Section == 0 || name != "" && ref.Symbol != name && !contains(all, name) {
		t.Errorf("%s: %+v is %q, %v, want %s", what, ref, all, err, name)
	}
	expect.Equal(t, strings.HasSuffix(name, "function") && im.Machine().Traits().Descriptors == "", im.Executable(ref.Addr), "%s: %s: Executable", what, name)
}

// TestNoAddress asks for an address where a relocation makes none.
func TestNoAddress(t *testing.T) {
	tools.Need(t, "gcc")
	directory := t.TempDir()
	path := filepath.Join(directory, "a.o")
	asm := filepath.Join(directory, "a.s")
	expect.OK(t, os.WriteFile(asm, []byte(".section set,\"a\"\n.long x, 0\n.quad y-., z\n.bss\n.zero 64\n"), 0o600))
	tools.Output(t, "gcc", "-c", "-o", path, asm)
	im := open(t, path)
	all, err := im.Arrays("set")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for _, tt := range []struct {
		read func(image.Addr) (image.Ref, error)
		off  uint64
		want string
	}{
		{im.Word, 0, "set+0x0: a field with the relocation R_X86_64_32, which is not used in records"},
		{im.Word, 8, "set+0x8: a field with the relocation R_X86_64_PC64, which is not used in records"},
		{im.Distance, 0, "set+0x0: a field with the relocation R_X86_64_32, which is not used in records"},
		{im.Distance, 16, "set+0x10: a field with the relocation R_X86_64_64, which is not used in records"},
		{im.Word, 17, "set+0x11: 8 bytes wanted of a section of 0x18 bytes"},
		{im.Distance, 1 << 60, "set+0x1000000000000000: 4 bytes wanted of a section of 0x18 bytes"},
	} {
		expect.Equal(t, path+": "+tt.want, expect.Failure(tt.read(all[0].Start.Add(tt.off))))
	}
	expect.Equal(t, path+": section 1000+0x0: is in no section", expect.Failure(im.Word(image.Addr{Section: 1000})))
	expect.Equal(t, path+": 0x8: is in no section", expect.Failure(im.Word(image.Addr{Offset: 8})))
}

// words lists the fields of an image's array, and where it stands.
func words(t *testing.T, im image.Image, section string) (all []image.Range, refs []image.Ref) {
	t.Helper()
	all = expect.Value(im.Arrays(section))(t)
	for _, r := range all {
		for off := uint64(0); off < r.Size; off += 8 {
			refs = append(refs, expect.Value(im.Word(r.Start.Add(off)))(t))
		}
	}
	return all, refs
}

// changed makes a copy of an image by a command that takes both names.
func changed(t *testing.T, path, tool string, args ...string) string {
	t.Helper()
	tools.Need(t, tool)
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	tools.Output(t, tool, append(args, path, out)...)
	return out
}

// TestArrays finds an array by each of what tells where it is.
func TestArrays(t *testing.T) {
	tools.Need(t, "objcopy")
	lib := library(t)
	want, wantRefs := words(t, open(t, lib), "sdt_instances_set")
	if len(want) != 1 || want[0].Size != 64 {
		t.Fatal(want)
	}
	rename := "--rename-section=sdt_instances_set=merged"
	for name, path := range map[string]string{
		"symtab":     changed(t, lib, "objcopy", rename),
		"dynsym":     changed(t, lib, "objcopy", rename, "--strip-all"),
		"stripped":   changed(t, lib, "objcopy", "--strip-all"),
		"PT_DYNAMIC": withoutSections(t, lib),
		"PT_NULL":    withoutDynamic(t, lib),
	} {
		got, refs := words(t, open(t, path), "sdt_instances_set")
		if !slices.Equal(got, want) || !slices.Equal(refs, wantRefs) {
			t.Errorf("%s:\ngot  %v %v\nwant %v %v", name, got, refs, want, wantRefs)
		}
	}
	if got, _ := words(t, open(t, lib), "no_such_set"); got != nil {
		t.Errorf("no_such_set is at %v", got)
	}
}

// withoutDynamic takes PT_DYNAMIC away, as kernels have none, and leaves the
// section headers.
func withoutDynamic(t *testing.T, path string) string {
	t.Helper()
	data := disk.Read(t, path)
	for at := binary.LittleEndian.Uint64(data[32:]); ; at += 56 {
		if typ := binary.LittleEndian.Uint32(data[at:]); typ == uint32(elf.PT_DYNAMIC) {
			binary.LittleEndian.PutUint32(data[at:], uint32(elf.PT_NULL))
			break
		}
	}
	path = filepath.Join(t.TempDir(), "kernel")
	expect.OK(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestDebugFile(t *testing.T) {
	lib := library(t, "-g")
	debug := changed(t, lib, "objcopy", "--only-keep-debug")
	if _, err := open(t, debug).Arrays("sdt_instances_set"); err == nil ||
		err.Error() != debug+": sdt_instances_set: has no contents in this file; is it a separate debug file?" {
		t.Errorf("arrays of a debug file: %v", err)
	}
	stripped := open(t, changed(t, lib, "objcopy", "--strip-all"))
	_, refs := words(t, stripped, "sdt_instances_set")
	expect.Equal(t, 0, len(expect.Value(stripped.SymbolsAt(refs[1].Addr))(t)), "names in a stripped library")
}

func TestOpenOthers(t *testing.T) {
	core := newTiny().bytes()
	core[16] = byte(elf.ET_CORE)
	expect.Equal(t, "tiny.so: an ELF file of type ET_CORE holds no probes", expect.Failure(openBytes(core)))
	sparc := newTiny().bytes()
	sparc[18] = byte(elf.EM_SPARC)
	if _, err := openBytes(sparc); err == nil || !strings.HasPrefix(err.Error(), "tiny.so: the machine EM_SPARC is not supported") {
		t.Error(err)
	}
}

package image_test

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
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
				word := tools.OpenELF(t, path).Encoding.Word()
				checkObject(t, open(t, path), word)
				if word == 4 {
					return // its addends are implicit already
				}
				implicit := path + ".rel"
				expect.OK(t, os.WriteFile(implicit, withImplicitAddends(t, path), 0o600))
				if !m.Relaxes { // where fields have two relocations
					checkObject(t, open(t, implicit), word)
				}
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

// withImplicitAddends rewrites an object's SHT_RELA sections of data as SHT_REL,
// which compilers make for 32-bit machines only.
func withImplicitAddends(t *testing.T, path string) []byte {
	t.Helper()
	data := disk.Read(t, path)
	f := disk.ELF(t, data)
	order := f.ByteOrder
	headers := order.Uint64(data[40:])
	for i, s := range f.Sections {
		if s.Type != elf.SHT_RELA {
			continue
		}
		target, header, out := f.Sections[s.Info], data[headers+uint64(64*i):], data[s.Offset:s.Offset]
		if target.Flags&elf.SHF_ALLOC == 0 || target.Flags&elf.SHF_EXECINSTR != 0 || strings.HasPrefix(target.Name, ".eh_frame") {
			continue
		}
		for at := s.Offset; at < s.Offset+s.Size; at += 24 {
			var r [24]byte
			copy(r[:], data[at:])
			field := data[target.Offset+order.Uint64(r[:]):]
			if target.Name == "sdt_instances_rel" {
				order.PutUint32(field, uint32(order.Uint64(r[16:])))
			} else {
				order.PutUint64(field, order.Uint64(r[16:]))
			}
			out = append(out, r[:16]...)
		}
		order.PutUint32(header[4:], uint32(elf.SHT_REL))
		order.PutUint64(header[32:], uint64(len(out)))
		order.PutUint64(header[56:], 16)
	}
	return data
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

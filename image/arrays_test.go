package image_test

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

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

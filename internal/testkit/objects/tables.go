package objects

import (
	"bytes"
	"debug/elf"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// OfEachMachine are small committed objects of each machine, one of them with groups, two
// with marked nops.
var OfEachMachine = []string{
	"comdat.amd64-gcc12-Os.o",
	"existing.amd64-gcc12-O2.o",
	"existing.thumb-clang19-O2.o",
	"existing.arm64-gcc12-O2.o",
	"existing.i386-gcc12-O2.o",
	"existing.loong64-clang19-O2.o",
	"existing.ppc64-gcc12-O2.o",
	"existing.ppc64le-gcc12-O2.o",
	"existing.riscv64-gcc12-O2.o",
	"existing.s390x-gcc12-O2.o",
	"nops.amd64-gcc12-O2.o",
	"nops.riscv64-gcc12-O2.o",
}

// Tables lists the byte ranges of a sound object's tables.
func Tables(t testing.TB, data []byte) [][2]int {
	t.Helper()
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "tables.o"))(t)
	// The file's header with e_shoff in it, and the size of a section's.
	header, shoff, section := 52, 32, 40
	at := int(o.Encoding.Order.Uint32(data[shoff:]))
	if o.Encoding.Class == elf.ELFCLASS64 {
		header, shoff, section = 64, 40, 64
		at = int(o.Encoding.Order.Uint64(data[shoff:]))
	}
	ranges := [][2]int{{0, header}, {at, at + section*len(o.Sections)}}
	for _, sec := range o.Sections {
		switch sec.Type {
		case elf.SHT_SYMTAB, elf.SHT_REL, elf.SHT_RELA, elf.SHT_GROUP:
			ranges = append(ranges, [2]int{int(sec.Offset), int(sec.Offset + sec.Size)})
		}
	}
	return ranges
}

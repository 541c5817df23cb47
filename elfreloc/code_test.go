package elfreloc

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

const (
	alloc = elf.SHF_ALLOC
	exec  = elf.SHF_EXECINSTR
)

func TestCodeOfObjectsIsBySection(t *testing.T) {
	o := &Object{Type: elf.ET_REL, Sections: []Section{
		{}, {Type: elf.SHT_PROGBITS, Flags: alloc | exec, Size: 8}, {Type: elf.SHT_PROGBITS, Flags: alloc, Size: 8},
		{Type: elf.SHT_NOBITS, Flags: alloc | exec, Size: 8}, {Type: elf.SHT_PROGBITS, Flags: exec, Size: 4},
		{Type: elf.SHT_PROGBITS, Flags: alloc | exec},
	}}
	checkCode(t, o, Code{{1, 0, 8}, {4, 0, 4}})
}

func TestCodeOfImages(t *testing.T) {
	data := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Vaddr: 0x1000, Memsz: 0x1000}
	text := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: 0x8000, Memsz: 0x1000}
	for _, c := range []struct {
		name     string
		sections []Section
		want     Code
	}{
		{"no section headers", nil, Code{{0, 0x8000, 0x9000}}},
		{"headers without code", []Section{{}, {Flags: alloc, Addr: 0x8000, Size: 8}, {Flags: exec, Addr: 0x8010, Size: 8}}, Code{{0, 0x8000, 0x9000}}},
		{"sections before segments", []Section{{}, {Flags: alloc | exec, Addr: 0x8100, Size: 8}}, Code{{0, 0x8100, 0x8108}}},
		{"a debug file", []Section{{}, {Type: elf.SHT_NOBITS, Flags: alloc | exec, Addr: 0x8100, Size: 8}}, Code{{0, 0x8100, 0x8108}}},
		{"neighbours stay apart", []Section{{}, {Flags: alloc | exec, Addr: 0x20, Size: 8}, {Flags: alloc | exec, Addr: 0x10, Size: 0x10}}, Code{{0, 0x10, 0x20}, {0, 0x20, 0x28}}},
		{"overlap", []Section{{Flags: alloc | exec, Addr: 0x10, Size: 0x20}, {Flags: alloc | exec, Addr: 0x18, Size: 8}, {Flags: alloc | exec, Addr: 0x20, Size: 0x20}}, Code{{0, 0x10, 0x30}, {0, 0x30, 0x40}}},
		{"the end of addresses", []Section{{Flags: alloc | exec, Addr: 1 << 63, Size: math.MaxUint64}}, Code{{0, 1 << 63, math.MaxUint64}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkCode(t, imageOf(t, c.sections, data, text), c.want)
		})
	}
}

func TestCodeOfBrokenProgramHeadersIsAnError(t *testing.T) {
	o := imageOf(t, nil, elf.Prog64{})
	o.phentsize = 1
	if code, err := o.Code(); err == nil {
		t.Errorf("got %v", code)
	}
}

func imageOf(t *testing.T, sections []Section, segments ...elf.Prog64) *Object {
	t.Helper()
	var b bytes.Buffer
	h := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(segments)),
	}
	for _, part := range []any{h, segments} {
		expect.OK(t, binary.Write(&b, binary.LittleEndian, part))
	}
	o := expect.Value(Open(bytes.NewReader(b.Bytes()), int64(b.Len()), "image"))(t)
	o.Sections = sections
	return o
}

// checkCode compares the ranges, and what Find says of them and around them.
func checkCode(t *testing.T, o *Object, want Code) {
	t.Helper()
	got := expect.Value(o.Code())(t)
	if !slices.Equal(got, want) {
		t.Fatalf("code is %x, want %x", got, want)
	}
	for _, r := range want {
		for _, off := range []uint64{r.Start - 1, r.Start, r.End - 1, r.End} {
			for section := range 6 {
				in := slices.IndexFunc(want, func(r CodeRange) bool { return r.holds(section, off) })
				if i := got.Find(section, off); i != in {
					t.Errorf("section %d+%#x is in range %d, want %d", section, off, i, in)
				}
			}
		}
	}
}

func TestMappingLetters(t *testing.T) {
	for name, want := range map[string]byte{
		"$x": 'x', "$d": 'd', "$t": 't', "$a": 'a', "$x.0": 'x', "$d.realdata": 'd', "$xrv64i2p1_m2p0": 'x', "$xrv32i2p0.7": 'x',
		"$": 0, "$xy": 0, "$drv64i": 0, "$data": 0, "x": 0, "": 0,
	} {
		if got := mappingLetter(name + "\x00$next\x00"); got != want && name != "" {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
	if got := mappingLetter("$x"); got != 0 {
		t.Errorf("a name that the table cuts off: got %q", got)
	}
}

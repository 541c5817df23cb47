package linkerset_test

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
)

func TestSectionNames(t *testing.T) {
	for _, c := range []struct{ format, name, probe, enabled string }{
		{"pairs", "", "sdt_instances_set", "sdt_isenabled_set"},
		{"relative", "", "sdt_instances_rel", "sdt_isenabled_rel"},
		{"freebsd", "", "set_sdt_instances_set", "set_sdt_isenabled_set"},
		{"pairs", "mine", "mine", "mine_isenabled"},
		{"relative", "mine", "mine", "mine_isenabled"},
		{"freebsd", "mine", "set_mine", "set_mine_isenabled"},
	} {
		l := parse(t, c.format, c.name)
		if got := []string{l.Section(arch.Probe), l.Section(arch.Enabled)}; !cmp.Equal(got, []string{c.probe, c.enabled}) {
			t.Errorf("%s %q: %v", c.format, c.name, got)
		}
		if l.Format.String() != c.format {
			t.Errorf("%s is shown as %s", c.format, l.Format)
		}
	}
}

func TestParseLayoutErrors(t *testing.T) {
	const identifier = " is not a C identifier, so linkers would make no __start_ and __stop_ symbols"
	for _, c := range []struct{ format, name, want string }{
		{"", "", `unknown layout ""; known are pairs, relative, freebsd`},
		{"Pairs", "", `unknown layout "Pairs"; known are pairs, relative, freebsd`},
		{"pairs", ".mine", `section name ".mine"` + identifier},
		{"freebsd", "1st", `section name "1st"` + identifier},
		{"relative", "a b", `section name "a b"` + identifier},
		{"pairs", "a\n", `section name "a\n"` + identifier},
	} {
		expect.Equal(t, c.want, expect.Failure(linkerset.ParseLayout(c.format, c.name)), "%q %q", c.format, c.name)
	}
}

func TestRecordSize(t *testing.T) {
	for _, c := range []struct {
		format string
		word   int
		want   int
	}{{"pairs", 8, 16}, {"pairs", 4, 8}, {"relative", 8, 8}, {"relative", 4, 8}, {"freebsd", 8, 8}, {"freebsd", 4, 4}} {
		expect.Equal(t, c.want, parse(t, c.format, "").Size(c.word), "%s of words of %d bytes", c.format, c.word)
	}
}

// recordSections shows all sections that a conversion has added, but those of
// relocations: header and relocated fields.
func recordSections(t *testing.T, object string, l linkerset.Layout) string {
	before := objects.Read(t, object)
	after, _ := convert(t, before, l, false)
	f := disk.ELF(t, after)
	var b strings.Builder
	for _, s := range f.Sections[len(disk.ELF(t, before).Sections):] {
		if s.Type == elf.SHT_RELA {
			continue
		}
		fmt.Fprintf(&b, "%s %v %v align %d entry %d size %d\n", s.Name, s.Type, s.Flags, s.Addralign, s.Entsize, s.Size)
		for _, line := range spell(t, f, s) {
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String()
}

func TestRecordsOfEachLayout(t *testing.T) {
	for _, c := range []struct{ object, format, name, want string }{
		{"large.arm64-gcc12-large.o", "pairs", "", `
sdt_instances_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_AARCH64_ABS64 sdt_large___call+0
  0x8 R_AARCH64_ABS64 [.text]+16
sdt_isenabled_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_AARCH64_ABS64 sdt_large___call+0
  0x8 R_AARCH64_ABS64 [.text]+36
.text.__sdt_return_0 SHT_PROGBITS SHF_ALLOC+SHF_EXECINSTR align 4 entry 0 size 12
`},
		{"large.arm64-gcc12-large.o", "relative", "", `
sdt_instances_rel SHT_PROGBITS SHF_ALLOC align 4 entry 8 size 8
  0x0 R_AARCH64_PREL32 sdt_large___call+0
  0x4 R_AARCH64_PREL32 [.text]+16
sdt_isenabled_rel SHT_PROGBITS SHF_ALLOC align 4 entry 8 size 8
  0x0 R_AARCH64_PREL32 sdt_large___call+0
  0x4 R_AARCH64_PREL32 [.text]+36
.text.__sdt_return_0 SHT_PROGBITS SHF_ALLOC+SHF_EXECINSTR align 4 entry 0 size 12
`},
		{"gotload.amd64-gcc12-noplt.o", "freebsd", "", `
sdt_instances SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 48
  0x0 R_X86_64_64 sdt_gotload___loop+0
  0x8 R_X86_64_64 [.text]+39
  0x10 R_X86_64_64 sdt_gotload___loop+0
  0x18 R_X86_64_64 [.text]+48
  0x20 R_X86_64_64 sdt_gotload___loop+0
  0x28 R_X86_64_64 [.text]+71
set_sdt_instances_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 8 size 24
  0x0 R_X86_64_64 [sdt_instances]+0
  0x8 R_X86_64_64 [sdt_instances]+16
  0x10 R_X86_64_64 [sdt_instances]+32
sdt_instances SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_X86_64_64 sdt_gotload___loop+0
  0x8 R_X86_64_64 [.text]+54
set_sdt_isenabled_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 8 size 8
  0x0 R_X86_64_64 [sdt_instances]+0
`},
		{"large.arm64-gcc12-large.o", "freebsd", "mine", `
mine_structs SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_AARCH64_ABS64 sdt_large___call+0
  0x8 R_AARCH64_ABS64 [.text]+16
set_mine SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 8 size 8
  0x0 R_AARCH64_ABS64 [mine_structs]+0
mine_structs SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_AARCH64_ABS64 sdt_large___call+0
  0x8 R_AARCH64_ABS64 [.text]+36
set_mine_isenabled SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 8 size 8
  0x0 R_AARCH64_ABS64 [mine_structs]+0
.text.__sdt_return_0 SHT_PROGBITS SHF_ALLOC+SHF_EXECINSTR align 4 entry 0 size 12
`},
		{"existing.amd64-gcc12-static.o", "pairs", "", `
sdt_instances_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 48
  0x0 R_X86_64_64 [.data]+0
  0x8 R_X86_64_64 [.text]+3
  0x10 R_X86_64_64 sdt_existing___new+0
  0x18 R_X86_64_64 [.text]+10
  0x20 R_X86_64_64 sdt_existing___weak+0
  0x28 R_X86_64_64 [.text]+27
sdt_isenabled_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_X86_64_64 [.data]+0
  0x8 R_X86_64_64 [.text]+32
`},
	} {
		t.Run(c.object+" "+c.format+" "+c.name, func(t *testing.T) {
			expect.Equal(t, c.want, "\n"+recordSections(t, c.object, parse(t, c.format, c.name)))
		})
	}
}

// memory is an image of words of 8 bytes at any address.
type memory struct {
	image.Image
	bytes map[uint64]byte
	next  uint64
	types image.Range // the linker set of types of arguments
}

// undefined is what a pointer to a provider of another file has.
const undefined = 0xffff0000

func (m *memory) Encoding() elfreloc.Encoding {
	return elfreloc.Encoding{Class: 2, Order: binary.LittleEndian}
}

func (m *memory) SymbolsAt(image.Addr) ([]string, error) { return nil, nil }

func (m *memory) Arrays(section string) ([]image.Range, error) {
	if section != "set_sdt_argtypes_set" {
		return nil, nil
	}
	return []image.Range{m.types}, nil
}

func (m *memory) Bytes(a image.Addr, n uint64) (b []byte, err error) {
	for at := range n {
		v, ok := m.bytes[a.Offset+at]
		if !ok {
			return nil, errors.New("no memory")
		}
		b = append(b, v)
	}
	return b, nil
}

func (m *memory) Word(a image.Addr) (image.Ref, error) {
	b, err := m.Bytes(a, 8)
	if err != nil {
		return image.Ref{}, err
	}
	ref := image.Ref{Addr: image.Addr{Offset: binary.LittleEndian.Uint64(b)}}
	if ref.Offset == undefined {
		ref = image.Ref{Symbol: "sdt_provider_elsewhere", Undefined: true}
	}
	return ref, nil
}

// put writes something behind everything else, and returns where it is.
func (m *memory) put(b []byte) uint64 {
	at := m.next
	for i, v := range b {
		m.bytes[at+uint64(i)] = v
	}
	m.next += uint64(len(b))
	return at
}

func words(w ...uint64) (b []byte) {
	for _, v := range w {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// arguments puts a linker set of the types of the arguments of the probe at an address, in any order, among those of
// others and what says nothing. It returns those that are there to be read.
func (m *memory) arguments(r *rand.Rand, at uint64) (args []linkerset.Argument) {
	pointers := []uint64{0, undefined, m.put(words(0, 0, 0, 0, 0, 0)), m.put(words(0, 0, 0, 0, 0, undefined)), m.put(words(9))}
	m.next += 0x1000 // the last one is cut off
	for i := range r.IntN(4) {
		arg := linkerset.Argument{Index: i, Native: fmt.Sprintf("native%d", i)}
		fields := words(uint64(i), m.put([]byte(arg.Native+"\x00")), 0, 0, 0, at)
		if r.IntN(2) == 0 {
			arg.Translated = "translated"
			binary.LittleEndian.PutUint64(fields[16:], m.put([]byte("translated\x00")))
		}
		args, pointers = append(args, arg), append(pointers, m.put(fields))
		pointers = append(pointers, m.put(words(uint64(i), 0, 0, 0, 0, at+8)))
	}
	r.Shuffle(len(pointers), func(i, j int) { pointers[i], pointers[j] = pointers[j], pointers[i] })
	m.types = image.Range{Start: image.Addr{Offset: m.put(words(pointers...))}, Size: uint64(8*len(pointers) + r.IntN(8))}
	return args
}

// TestProbesOfStructures reads what random structures of FreeBSD 13 and 15 (sys/sdt.h) say.
func TestProbesOfStructures(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for n := range 500 {
		m := &memory{bytes: map[uint64]byte{}, next: 0x1000}
		text := func(name string) uint64 { return m.put(append([]byte(name), 0)) }
		name := func(kind string) string { return fmt.Sprintf("%s%0*d", kind, 1+r.IntN(150), r.IntN(1000)) }
		want := linkerset.Probe{Provider: name("p"), Module: name("m"), Function: name("f"), Name: name("n")}
		structure := make([]uint64, 12+2*r.IntN(2))
		late := len(structure) - 12
		structure[0] = uint64(8 * len(structure))
		structure[1] = m.put(words(text(want.Provider), 0))
		structure[6+late], structure[7+late], structure[8+late] = text(want.Module), text(want.Function), text(want.Name)
		if r.IntN(6) == 0 {
			want.Provider, structure[1] = "elsewhere", undefined
		}
		symbol := "sdt_" + want.Provider + "_" + want.Module + "_" + want.Function + "_" + want.Name
		switch change := r.IntN(6); {
		case change == 0: // no size of a structure
			structure[0] += uint64([]int{-8, 8, 4}[r.IntN(3)])
			want = linkerset.Probe{}
		case change == 1: // no provider
			structure[1] = 0
			want = linkerset.Probe{}
		case change == 2 && late > 0: // a structure of another shape
			symbol = "sdt_another"
			want = linkerset.Probe{}
		case change == 2:
			symbol = "sdt_another"
			want.ID, want.FromStruct = "another", true
		}
		if want.Provider == "" {
			want = linkerset.ProbeFromID(symbol[len("sdt_"):])
		} else if want.FromStruct = true; want.ID == "" {
			want.ID = symbol[len("sdt_"):]
		}
		at := image.Addr{Offset: m.put(words(structure...))}
		args := m.arguments(r, at.Offset)
		if want.FromStruct {
			want.Args = args
		}
		got := expect.Value(linkerset.NewProbes(m, "sdt_").Lookup(image.Ref{Addr: at, Symbol: symbol}))(t)
		expect.Equal(t, want, got, "structure %d of %d words", n, len(structure))
	}
}

// sections gives each address of a memory a section.
type sections struct {
	*memory
	of map[uint64]int
}

func (s sections) Bytes(a image.Addr, n uint64) ([]byte, error) {
	if s.of[a.Offset] != a.Section && s.of[a.Offset] != 0 {
		return nil, errors.New("no memory")
	}
	return s.memory.Bytes(a, n)
}

func (s sections) Word(a image.Addr) (image.Ref, error) {
	ref, err := s.memory.Word(a)
	ref.Section = s.of[ref.Offset]
	return ref, err
}

// Structures for sites have their strings beside them, in the order in which stubs and the
// macros write them; those of sources have not.
func TestStructuresForSites(t *testing.T) {
	const at = 0x2000
	for _, c := range []struct {
		what                   string
		name, module, function uint64 // where their strings are
		elsewhere              uint64 // a string of another section
		want                   bool
	}{
		{"of stubs", at + 96, at + 100, at + 100, 0, true},
		{"of stubs, empty strings elsewhere", at + 96, at + 101, at + 101, 0, false},
		{"of macros", at - 8, at - 4, at - 4, 0, true},
		{"of macros, a word before", at - 16, at - 8, at - 8, 0, true},
		{"of macros, further before", at - 24, at - 9, at - 9, 0, false},
		{"two empty strings", at - 8, at - 4, at - 3, 0, false},
		{"the name behind", at - 3, at - 4, at - 4, 0, false},
		{"the name in the place of the others", at - 4, at - 4, at - 4, 0, false},
		{"behind the structure", at + 104, at + 108, at + 108, 0, false},
		{"strings in the structure's place", at - 4, at, at, 0, false},
		{"a name of another section", at - 8, at - 4, at - 4, at - 8, false},
		{"empty strings of another section", at - 8, at - 4, at - 4, at - 4, false},
		{"no name", 0, at - 4, at - 4, 0, false},
		{"no module", at - 8, 0, 0, 0, false},
	} {
		m := &memory{bytes: map[uint64]byte{}, next: at - 24}
		m.put(make([]byte, 24))
		structure := make([]uint64, 12)
		structure[0], structure[6], structure[7], structure[8] = 96, c.module, c.function, c.name
		m.put(words(structure...))
		m.put([]byte("name\x00\x00\x00\x00name\x00\x00\x00\x00"))
		s := sections{m, map[uint64]int{c.module: 1, c.function: 1, c.name: 1}}
		if c.elsewhere != 0 {
			s.of[c.elsewhere] = 2
		}
		section := 1
		if c.name == 0 || c.module == 0 { // as in an image, where nothing has a section
			section, s.of = 0, nil
		}
		got := linkerset.NewProbes(s, "sdt_").DefinedBySites(image.Addr{Section: section, Offset: at})
		expect.Equal(t, c.want, got, "%s", c.what)
	}
}

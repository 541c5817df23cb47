package emit

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/patch"
)

func source(write func(*sourceText)) (string, error) {
	t := newSourceText(8, "f")
	write(t)
	_, body, _ := strings.Cut(string(t.Bytes()), ".file \"f\"\n")
	return body, t.Err()
}

func TestTextQuotesNames(t *testing.T) {
	for name, want := range map[string]string{
		"sdt_a.b$": `"sdt_a.b$"`, "sdt_a.1": "sdt_a.1", "1f": `"1f"`, "a-b": `"a-b"`, "a b": `"a b"`, "größe": `"größe"`, "": `""`,
	} {
		got, err := source(func(a *sourceText) { a.Word(name, 8) })
		if name == "" {
			want = "8"
		} else {
			want += "+8"
		}
		if got != "\t.8byte "+want+"\n" || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

// No name leads out of its line or its quotes.
func TestTextRefusesNames(t *testing.T) {
	for _, name := range []string{"a\nb", `a"b`, `a\b`, "a@b", "a\x7fb", "a\tb"} {
		body, err := source(func(a *sourceText) { a.Word(name, 0) })
		if err == nil || !strings.Contains(err.Error(), "cannot be written in assembly") || strings.Count(body, "\n") != 1 {
			t.Errorf("%q: %v, %q", name, err, body)
		}
	}
}

func TestTextQuotesStrings(t *testing.T) {
	got, err := source(func(a *sourceText) { a.String("a\n\"\\\x00*/1") })
	if diff := cmp.Diff("\t.asciz \"a\\012\\042\\134\\000*/1\"\n", got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestTextDefinesOnce(t *testing.T) {
	_, err := source(func(a *sourceText) {
		a.Symbol(Symbol{Name: "a", Bind: elf.STB_WEAK})
		a.Symbol(Symbol{Name: "a", Bind: elf.STB_WEAK})
	})
	expect.Equal(t, `two definitions of "a" are needed in one object`, fmt.Sprint(err))
}

// implicit is a machine whose relocations have no addends.
type implicit struct{ arch.Machine }

func (m implicit) Traits() *arch.Traits {
	t := *m.Machine.Traits()
	t.Rela = false
	return &t
}

// Where relocations have no addends, the fields have them.
func TestObjectPutsAddendsWhereTheMachineHasThem(t *testing.T) {
	data := objects.Read(t, "calls.amd64-gcc12-O2.o")
	like := objects.Open(t, data)
	for _, m := range []arch.Machine{machines.Lookup(like.ABI()), implicit{machines.Lookup(like.ABI())}} {
		a := expect.Value(NewObject(expect.Value(like.Empty(""))(t), m, "f"))(t)
		a.Section(Section{Name: ".data.a", Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Align: 8})
		a.Zero(8)
		a.Label(".Lhere")
		a.Word(".Lhere", 16)
		a.Word("other", -1)
		out := expect.Value(a.Bytes())(t)
		o := expect.Value(elfreloc.Open(bytes.NewReader(out), int64(len(out)), "f.o"))(t)
		im := expect.Value(image.Open(o, m))(t)
		for i := range o.Sections {
			s := &o.Sections[i]
			if wrong := map[bool]elf.SectionType{true: elf.SHT_REL, false: elf.SHT_RELA}[m.Traits().Rela]; s.Type == wrong {
				t.Errorf("addends in relocations: %v, and a section %s", m.Traits().Rela, s.Name)
			}
			if s.Name != ".data.a" {
				continue
			}
			expect.Equal(t, image.Addr{Section: i, Offset: 24}, expect.Value(im.Word(image.Addr{Section: i, Offset: 8}))(t).Addr, "the first word")
			if r, err := im.Word(image.Addr{Section: i, Offset: 16}); err != nil || r.Symbol != "other" || int64(r.Addr.Offset) != -1 {
				t.Errorf("the second word refers to %+v, %v", r, err)
			}
		}
	}
}

// describeRandom describes a random object.
func describeRandom(r *rand.Rand, a assembler) {
	var symbols, labels []string
	name := func() string {
		switch all := slices.Concat(symbols, labels, []string{"undefined", "un-defined", "un defined", ""}); r.IntN(3) {
		case 0:
			return "other"
		default:
			return all[r.IntN(len(all))]
		}
	}
	for n := range 2 + r.IntN(4) {
		s := Section{Name: fmt.Sprintf(".s-%d", n), Type: elf.SHT_PROGBITS, Align: 1 << r.IntN(5)}
		if r.IntN(4) == 0 {
			s.Type = elf.SHT_NOTE
		}
		for _, flag := range []elf.SectionFlag{elf.SHF_ALLOC, elf.SHF_WRITE} {
			if r.IntN(2) == 0 {
				s.Flags |= flag
			}
		}
		if r.IntN(3) == 0 {
			s.Group = fmt.Sprintf("group%d", r.IntN(2))
		}
		a.Section(s)
		anchor := fmt.Sprintf(".Lsection%d", n)
		a.Label(anchor)
		if s.Group != "" && !slices.Contains(symbols, s.Group) { // its first section defines it
			a.Symbol(Symbol{Name: s.Group, Bind: elf.STB_WEAK, Type: elf.STT_OBJECT, Hidden: true})
			symbols = append(symbols, s.Group)
		}
		for range r.IntN(12) {
			switch r.IntN(8) {
			case 0:
				symbol := Symbol{
					Name: fmt.Sprintf("symbol-%d", len(symbols)), Bind: elf.STB_GLOBAL, Type: elf.STT_OBJECT,
					Hidden: r.IntN(2) == 0, Size: r.Uint64N(100),
				}
				if r.IntN(2) == 0 {
					symbol.Bind = elf.STB_WEAK
				}
				if r.IntN(2) == 0 {
					symbol.Type = elf.STT_FUNC
				}
				a.Symbol(symbol)
				symbols = append(symbols, symbol.Name)
			case 1:
				label := fmt.Sprintf(".Llabel%d_%d", n, len(labels))
				a.Label(label)
				labels = append(labels, label)
			case 2, 3:
				a.Word(name(), r.Int64N(200)-100)
			case 4:
				a.Int(r.Uint32())
			case 5:
				b := make([]byte, r.IntN(8))
				for i := range b {
					b[i] = byte(1 + r.IntN(255))
				}
				a.String(string(b))
			case 6:
				a.Zero(r.IntN(5))
				a.Align(int(s.Align))
			case 7:
				a.Keep(anchor, fmt.Sprintf(".Lsection%d", r.IntN(n+1)))
			}
		}
	}
}

// spellObject lists what an object holds, as debug/elf reads it.
func spellObject(t *testing.T, data []byte) (all []string) {
	t.Helper()
	f := disk.ELF(t, data)
	syms := expect.Value(f.Symbols())(t)
	where := func(s elf.SectionIndex) string {
		if s == 0 || s >= elf.SHN_LORESERVE {
			return s.String()
		}
		return f.Sections[s].Name
	}
	for i, s := range f.Sections {
		switch {
		case strings.HasPrefix(s.Name, ".s-"):
			content := expect.Value(s.Data())(t)
			all = append(all, fmt.Sprintf("%s %v %v align %d: %x", s.Name, s.Type, s.Flags, s.Addralign, content))
		case s.Type == elf.SHT_GROUP:
			members := []string{syms[s.Info-1].Name}
			content := expect.Value(s.Data())(t)
			for at := 4; at < len(content); at += 4 {
				if member := f.Sections[f.ByteOrder.Uint32(content[at:])]; member.Type != elf.SHT_RELA {
					members = append(members, member.Name)
				}
			}
			all = append(all, fmt.Sprintf("group %d %v", f.ByteOrder.Uint32(content), members))
		case s.Type == elf.SHT_RELA:
			content := expect.Value(s.Data())(t)
			for ; len(content) >= 24; content = content[24:] {
				info, addend := f.ByteOrder.Uint64(content[8:]), int64(f.ByteOrder.Uint64(content[16:]))
				sym := elf.Symbol{}
				if info>>32 != 0 {
					sym = syms[info>>32-1]
				}
				to := sym.Name
				if elf.ST_BIND(sym.Info) == elf.STB_LOCAL {
					to, addend = where(sym.Section), addend+int64(sym.Value)
				}
				all = append(all, fmt.Sprintf("%s+%#x %v %s%+d", f.Sections[f.Sections[i].Info].Name, f.ByteOrder.Uint64(content), elf.R_X86_64(info), to, addend))
			}
		}
	}
	for _, s := range syms {
		if elf.ST_BIND(s.Info) != elf.STB_LOCAL || elf.ST_TYPE(s.Info) == elf.STT_FILE {
			all = append(all, fmt.Sprintf("symbol %s %#x %v %s %#x %d", s.Name, s.Info, elf.ST_VISIBILITY(s.Other), where(s.Section), s.Value, s.Size))
		}
	}
	slices.Sort(all)
	return all
}

// TestTextIsTheObject compares what GNU's assembler makes of random descriptions with the objects
// of the same.
func TestTextIsTheObject(t *testing.T) {
	t.Parallel()
	tools.Need(t, "as")
	like := objects.Open(t, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	directory := t.TempDir()
	for seed := range uint64(tools.Cases(t, 100)) {
		text := newSourceText(8, "file")
		describeRandom(rand.New(rand.NewPCG(seed, 3)), text)
		expect.OK(t, text.Err())
		source, object := filepath.Join(directory, "a.s"), filepath.Join(directory, "a.o")
		disk.Write(t, source, string(text.Bytes()))
		tools.Must(t, "as", "-o", object, source)
		a := expect.Value(NewObject(expect.Value(like.Empty(""))(t), machines.Lookup(like.ABI()), "file"))(t)
		describeRandom(rand.New(rand.NewPCG(seed, 3)), a)
		got := expect.Value(a.Bytes())(t)
		expect.Equal(t, spellObject(t, []byte(disk.Read(t, object))), spellObject(t, got), "%s", bytes.TrimSpace(text.Bytes()))
		if t.Failed() {
			return
		}
	}
}

// sectionOf makes a section with symbols at offsets; a weak one's name ends in ?.
func sectionOf(bases map[string]uint64, deletions ...uint64) *recordSection {
	s := &recordSection{deletions: deletions}
	for name, value := range bases {
		plain := strings.TrimSuffix(name, "?")
		s.bases = append(s.bases, baseSymbol{plain, value, plain != name})
	}
	slices.SortFunc(s.bases, compareBases)
	return s
}

func TestBase(t *testing.T) {
	const others = "defined in several objects"
	for _, c := range []struct {
		name    string
		section *recordSection
		want    string
	}{
		{"nothing", sectionOf(nil), "its section has no global symbol"},
		{"at the site", sectionOf(map[string]uint64{"f": 100}), "f"},
		{"nearest before", sectionOf(map[string]uint64{"f": 10, "g": 90, "h": 101}), "g"},
		{"only behind", sectionOf(map[string]uint64{"f": 101, "g": 102}), "f"},
		{"of equals the strong one", sectionOf(map[string]uint64{"a?": 10, "b": 10, "c": 10}), "b"},
		{"weak and alone", sectionOf(map[string]uint64{"a?": 10}), "a"},
		{"weak, and another object's too", sectionOf(map[string]uint64{"two?": 10}), others},
		{"strong, and weak elsewhere", sectionOf(map[string]uint64{"two": 10}), "two"},
		{"a weak one is passed over", sectionOf(map[string]uint64{"f": 10, "two?": 50}), "f"},
		{"deletions elsewhere", sectionOf(map[string]uint64{"f": 50}, 10, 100, 200), "f"},
		{"a deletion before", sectionOf(map[string]uint64{"f": 50, "g": 150}, 50), "g"},
		{"deletions around", sectionOf(map[string]uint64{"f": 50, "g": 150}, 99, 100), "-mno-relax"},
		{"a deletion at the site", sectionOf(map[string]uint64{"g": 150}, 100), "-mno-relax"},
	} {
		l := &RecordList{count: map[string]int{"two": 2}, groups: map[string]int{"copied": 2}}
		for _, b := range c.section.bases {
			l.count[b.name] = max(l.count[b.name], 1)
		}
		l.sift(c.section)
		b, err := c.section.base(100)
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case err == nil && b.name != c.want:
			t.Errorf("%s: %s, want %q", c.name, b.name, c.want)
		}
	}
}

// All copies of a group define its symbols, and nothing else may.
func TestBaseInGroups(t *testing.T) {
	l := &RecordList{count: map[string]int{"copied": 2, "strange": 3}, groups: map[string]int{"copied": 2}}
	s := sectionOf(map[string]uint64{"copied?": 10, "strange?": 20})
	s.signature = "copied"
	l.sift(s)
	if b, err := s.base(100); err != nil || b.name != "copied" {
		t.Errorf("%+v, %v", b, err)
	}
}

// A function of another instruction set than the usual one names nothing but itself.
func TestBaseOfAnotherInstructionSet(t *testing.T) {
	data := objects.Read(t, "existing.thumb-clang19-O2.o")
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "thumb.o"))(t)
	l := NewRecordList(patch.Options{FixedLayout: true})
	expect.OK(t, l.Add(o, machines.Lookup(o.ABI())))
	_, errs := l.Source()
	const want = `thumb.o: .text+0x4: in existing_user+0x4: a site of "sdt_existing___probe" that no other object can name: what is named by "existing_user" is not of the usual instruction set; compile for that, or convert the object`
	if len(errs) != 4 || errs[0].Error() != want {
		t.Errorf("%q", errs)
	}
}

func propertyNote(namesz, descsz, typ uint32, rest ...byte) []byte {
	var b []byte
	for _, v := range []uint32{namesz, descsz, typ} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return append(b, rest...)
}

const property = 0xc0000002

func TestFeatures(t *testing.T) {
	gnu := []byte("GNU\x00")
	value := []byte{2, 0, 0, 0xc0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}
	other := []byte{1, 0, 0, 0xc0, 4, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, c := range []struct {
		name  string
		notes []byte
		bits  uint32
		ok    bool
	}{
		{"nothing", nil, 0, true},
		{"a property", propertyNote(4, 16, 5, join(gnu, value)...), 3, true},
		{"behind another", propertyNote(4, 32, 5, join(gnu, other, value)...), 3, true},
		{"behind another note", join(propertyNote(4, 0, 1, gnu...), propertyNote(4, 16, 5, join(gnu, value)...)), 3, true},
		{"without padding", propertyNote(4, 12, 5, join(gnu, value[:12])...), 3, true},
		{"another's", propertyNote(4, 16, 5, join([]byte("ABC\x00"), value)...), 0, true},
		{"another type", propertyNote(4, 16, 6, join(gnu, value)...), 0, true},
		{"a cut header", propertyNote(4, 16, 5)[:11], 0, false},
		{"a long name", propertyNote(1<<31, 16, 5, join(gnu, value)...), 0, false},
		{"a long note", propertyNote(4, 0xffffffff, 5, join(gnu, value)...), 0, false},
		{"a long property", propertyNote(4, 16, 5, join(gnu, value[:4], []byte{9}, value[5:])...), 0, false},
		{"a cut property", propertyNote(4, 4, 5, join(gnu, value[:4])...), 0, false},
	} {
		l := elfreloc.Encoding{Class: elf.ELFCLASS64, Order: binary.LittleEndian}
		if bits, ok := featureBits(l, c.notes, property); bits != c.bits || ok != c.ok {
			t.Errorf("%s: %#x, %v", c.name, bits, ok)
		}
	}
}

// TestCommonPromises adds random objects to several parts, and compares what these have in common,
// once they are merged, with the promises that the objects were made with.
func TestCommonPromises(t *testing.T) {
	like := objects.Open(t, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	m := machines.Lookup(like.ABI())
	supported := m.Traits().Features.Supported
	promising := map[uint32]*elfreloc.Object{}
	for bits := range uint32(8) {
		a := expect.Value(NewObject(expect.Value(like.Empty(""))(t), m, "f"))(t)
		(&LinkNotes{machine: m, bits: bits}).Write(a, 8)
		promising[bits] = objects.Open(t, expect.Value(a.Bytes())(t))
	}
	r := rand.New(rand.NewPCG(1, 4))
	for range 500 {
		parts, want := make([]LinkNotes, 1+r.IntN(3)), LinkNotes{}
		for i := range parts {
			for range r.IntN(3) {
				bits := []uint32{3, uint32(r.IntN(8))}[r.IntN(2)]
				expect.OK(t, parts[i].Add(promising[bits], m))
				expect.OK(t, parts[i].Add(promising[0], nil))
				if want.objects++; want.objects == 1 {
					want.bits = supported
				}
				want.bits &= bits
				want.any |= bits
			}
		}
		var got LinkNotes
		for i := range parts {
			got.merge(&parts[i])
		}
		expect.Equal(t, []uint32{uint32(want.objects), want.bits, want.any}, []uint32{uint32(got.objects), got.bits, got.any})
		expect.Equal(t, want.bits&m.Traits().Features.LandingPad != 0, got.landingPad(), "a landing pad")
		expect.Equal(t, want.any|supported, got.OfData(m).bits, "promises of data")
	}
}

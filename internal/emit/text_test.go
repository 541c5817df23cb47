package emit

import (
	"bytes"
	"debug/elf"
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

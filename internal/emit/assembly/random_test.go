package assembly

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

// describeRandom describes a random object.
func describeRandom(r *rand.Rand, a Assembler) {
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
		text := NewText(8, "file")
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

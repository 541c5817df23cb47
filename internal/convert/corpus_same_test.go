package convert

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/manifest"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// pair is an object before and after.
type pair struct {
	*testing.T
	c        run
	change   set
	old, new *view
	seen     map[string]bool // what the objects had so far, lest a check has nothing to do
}

// kept lists what a conversion has to leave as it was.
var kept = []struct {
	name  string
	check func(p *pair)
}{
	{"sections", (*pair).checkSections},
	{"symbols", (*pair).checkSymbols},
	{"local symbols first", (*pair).checkLocalsFirst},
	{"relocations", (*pair).checkRelocations},
	{"address significance", (*pair).checkAddrsig},
	{"groups", (*pair).checkGroups},
	{"converted again", (*pair).checkAgain},
}

func TestConversionKeepsTheRest(t *testing.T) {
	for name, change := range map[string]set{
		"default":          nil,
		"relative":         func(o *patch.Options) { o.Layout.Format = linkerset.Relative },
		"freebsd":          func(o *patch.Options) { o.Layout.Format = linkerset.FreeBSD },
		"section":          func(o *patch.Options) { o.Layout.Name = "my_sites" },
		"drop-relocations": func(o *patch.Options) { o.DropRelocations = true },
		"no-records":       func(o *patch.Options) { o.NoRecords = true },
		"stapsdt":          func(o *patch.Options) { o.Notes = patch.WithNotes },
		"semaphores":       func(o *patch.Options) { o.Notes, o.AllSemaphores = patch.WithNotes, true },
		"dtrace":           func(o *patch.Options) { o.DTrace = true },
		"stapsdt, dtrace":  func(o *patch.Options) { o.Notes, o.DTrace = patch.WithNotes, true },
	} {
		if testing.Short() && name != "relative" && name != "stapsdt, dtrace" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, path := range objects.Paths(t) {
				c := convertTo(t, path, change)
				if c.failed || c.object.Status != manifest.Converted {
					continue
				}
				p := &pair{t, c, change, viewFile(t, c.before), viewFile(t, c.after), seen}
				for _, k := range kept {
					if k.check(p); t.Failed() {
						t.Fatalf("%s: %s: see above", path, k.name)
					}
				}
			}
			want := []string{"addrsig", "group", "local symbol made"}
			if name == "stapsdt" || name == "semaphores" {
				want = append(want, "semaphore")
			}
			for _, what := range want {
				if !seen[what] {
					t.Errorf("no object with: %s", what)
				}
			}
		})
	}
}

// checkAgain converts what is converted.
func (p *pair) checkAgain() {
	again := convertTo(p.T, p.c.after, p.change)
	if again.failed || again.object.Status != manifest.Unchanged {
		p.Errorf("converted again: %s, %s", again.object.Status, again.messages)
	} else if !sameContents(p.T, p.c.after, again.after) {
		p.Errorf("converted again: other bytes")
	}
}

// checkSections: what describes a section does not change, and what it holds only where it
// has to: code, symbols and names, and what refers to symbols. Of code, FuzzConvert has the bytes
// outside of the sites.
func (p *pair) checkSections() {
	for i, old := range p.old.Sections {
		now := p.new.Sections[i]
		want, got := old.SectionHeader, now.SectionHeader
		want.Offset, got.Offset = 0, 0
		switch {
		case old.Type == elf.SHT_SYMTAB, old.Type == elf.SHT_GROUP:
			want.Info = got.Info // the first global, the signature
		case slices.Contains(returnSites, old.Name), old.Type == elf.SHT_STRTAB, isRelocSection(old), isAddrsig(old):
		default:
			p.compareContents(i)
			continue
		}
		want.Size, want.FileSize, got.Size, got.FileSize = 0, 0, 0, 0
		if isRelocSection(old) && p.sameRelocs(i) {
			continue
		}
		expect.Equal(p, want, got, "section %d, %s", i, old.Name)
		if old.Type == elf.SHT_SYMTAB && got.Info == 0 {
			p.Errorf("section %d, %s: no first global symbol", i, old.Name)
		}
	}
}

func isAddrsig(s *elf.Section) bool { return s.Type == 0x6fff4c03 } // SHT_LLVM_ADDRSIG

// sameRelocs reports nothing wrong with a relocation section, whose entries
// another test compares.
func (p *pair) sameRelocs(i int) bool {
	return cmp.Equal(p.old.Sections[i].Flags, p.new.Sections[i].Flags) && p.old.Sections[i].Link == p.new.Sections[i].Link &&
		p.old.Sections[i].Info == p.new.Sections[i].Info && p.old.Sections[i].Entsize == p.new.Sections[i].Entsize
}

// compareContents compares a section that keeps its size.
func (p *pair) compareContents(i int) {
	old, now := p.old.Sections[i].SectionHeader, p.new.Sections[i].SectionHeader
	old.Offset, now.Offset = 0, 0
	if i == 0 {
		return
	}
	if diff := cmp.Diff(old, now); diff != "" {
		p.Errorf("section %d, %s: %s", i, old.Name, diff)
		return
	}
	if !p.old.executable(i) && !bytes.Equal(p.old.data[i], p.new.data[i]) {
		p.Errorf("section %d, %s: its bytes have changed", i, old.Name)
	}
}

// checkSymbols: all symbols but the stubs are still there with all that they said; new ones
// are probe objects, sections, labels and the return thunk.
func (p *pair) checkSymbols() {
	left := map[viewSymbol]int{}
	for _, s := range p.new.sortedSymbols() {
		left[s]++
		if stubID(s.Name) != "" && s.Section == elf.SHN_UNDEF {
			p.Errorf("stub %q is still undefined", s.Name)
		}
	}
	for _, s := range p.old.sortedSymbols() {
		if stubID(s.Name) != "" && s.Section == elf.SHN_UNDEF {
			continue
		}
		hidden := s
		hidden.Other = s.Other&^3 | byte(elf.STV_HIDDEN)
		switch {
		case left[s] > 0:
			left[s]--
		case strings.HasPrefix(s.Name, "sdt_") && left[hidden] > 0:
			left[hidden]-- // the relative layout
		default:
			p.Errorf("symbol %+v is gone", s)
		}
	}
	for s, n := range left {
		section := elf.ST_TYPE(s.Info) == elf.STT_SECTION && s.Name == "" && s.Value == 0
		p.seen["local symbol made"] = p.seen["local symbol made"] || n > 0 && section
		field := s.Name == ".Lsdt_field" && s.Info == 0 && int(s.Section) >= len(p.old.Sections)
		mark := s.Name == ".Lsdt_section" && s.Info == 0 && s.Value == 0
		// The mapping symbol of a helper, and its name.
		mark = mark || s.Name == "$a" && s.Info == 0 && s.Value == 0 && p.new.Machine == elf.EM_ARM
		mark = mark || s.Name == "__sdt_return_0" && s.Info == elf.ST_INFO(elf.STB_LOCAL, elf.STT_FUNC) && p.new.Machine == elf.EM_ARM
		label := field || mark || s.Name == ".Lsdt_site" && s.Info == elf.ST_INFO(elf.STB_LOCAL, elf.STT_NOTYPE)
		global := s.Section == elf.SHN_UNDEF && s.Info == elf.ST_INFO(elf.STB_GLOBAL, elf.STT_NOTYPE)
		probe := strings.HasPrefix(s.Name, "sdt_") && global
		base := strings.HasSuffix(s.Name, ".stapsdt.base") && int(s.Section) >= len(p.old.Sections)
		if n > 0 && !section && !label && !probe && !base && !p.isOfSemaphore(s) && !(s.Name == "__x86_return_thunk" && global) {
			p.Errorf("unexpected new symbol %+v", s)
		}
		if n > 1 && (section || probe) {
			p.Errorf("symbol %+v is new %d times", s, n)
		}
	}
}

// isOfSemaphore reports whether a new symbol is a semaphore, weak and hidden, or the base
// of all, or a helper that loads one.
func (p *pair) isOfSemaphore(s viewSymbol) bool {
	weak := elf.ST_BIND(s.Info) == elf.STB_WEAK && s.Other == byte(elf.STV_HIDDEN)
	isNew := int(s.Section) >= len(p.old.Sections)
	switch {
	case strings.HasSuffix(s.Name, "_semaphore"):
		p.seen["semaphore"] = p.seen["semaphore"] || isNew
		return weak && (s.Section == elf.SHN_UNDEF || isNew && s.Size == 2)
	case s.Name == "_.probes.base":
		return weak && isNew
	}
	return strings.HasPrefix(s.Name, "__sdt_enabled_") && isNew && s.Info == elf.ST_INFO(elf.STB_LOCAL, elf.STT_FUNC)
}

func (p *pair) checkLocalsFirst() {
	for _, s := range p.new.Sections {
		if s.Type != elf.SHT_SYMTAB {
			continue
		}
		for i, sym := range p.new.syms {
			if local := elf.ST_BIND(sym.Info) == elf.STB_LOCAL; local != (i < int(s.Info)) {
				p.Errorf("symbol %d %q, where the first global is %d", i, sym.Name, s.Info)
			}
		}
	}
}

// checkRelocations: every relocation that names no stub says what it said.
func (p *pair) checkRelocations() {
	for i, s := range p.old.Sections {
		if !isRelocSection(s) {
			continue
		}
		loaded := p.old.executable(int(s.Info)) || p.old.Sections[s.Info].Flags&elf.SHF_ALLOC != 0
		new := p.new.relocs(i)
		at := 0
		stubAt := ^uint64(0)
		for _, want := range p.old.relocs(i) {
			isStub := stubID(want.Sym.Name) != "" && p.old.executable(int(s.Info))
			if isStub || want.Offset == stubAt {
				stubAt = want.Offset
				for at < len(new) && want.Offset-new[at].Offset <= 1 && p.isOfSite(new[at]) {
					at++ // gone or neutral or retargeted
				}
				continue
			}
			if !loaded && namesStub(want) {
				want = viewReloc{Offset: want.Offset}
			}
			if at == len(new) || !p.sameReloc(want, new[at]) {
				p.Errorf("%s: %+v is gone", s.Name, want)
				return
			}
			at++
		}
		for ; at < len(new); at++ {
			if !p.isOfSite(new[at]) && !slices.Contains(returnSites, strings.TrimPrefix(s.Name, ".rela")) {
				p.Errorf("%s: unexpected new %+v", s.Name, new[at])
			}
		}
	}
}

// Return thunks, and the sections that list the jumps to them.
var (
	returnThunks = []string{"__x86_return_thunk", "__s390_indirect_jump_r14"}
	returnSites  = []string{".return_sites", ".s390_return_reg"}
)

// isOfSite reports whether a relocation does nothing, or is a jump to the
// return thunk or to a helper, or loads a semaphore.
func (p *pair) isOfSite(r viewReloc) bool {
	if r.Type == 0 { // R_*_NONE of all machines
		return true
	}
	helper := int(r.Sym.Section) < len(p.new.Sections) && strings.HasPrefix(p.new.Sections[r.Sym.Section].Name, ".text.__sdt_")
	load := p.new.Machine == elf.EM_RISCV && r.Sym.Name == ".Lsdt_site" || strings.HasSuffix(r.Sym.Name, "_semaphore")
	return helper || load || slices.Contains(returnThunks, r.Sym.Name)
}

// sameReloc compares relocations; one that named a stub, in debug information
// for instance, names the probe object.
func (p *pair) sameReloc(old, new viewReloc) bool {
	if id := stubID(old.Sym.Name); id != "" && old.Sym.Section == elf.SHN_UNDEF {
		old.Sym = new.Sym
		return old == new && (new.Sym.Name == "sdt_"+id || new.Sym == viewSymbol{})
	}
	if strings.HasPrefix(old.Sym.Name, "sdt_") {
		old.Sym.Other = new.Sym.Other // the relative layout hides it
	}
	return old == new
}

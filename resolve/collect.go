package resolve

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// collector finds the functions among symbols.
type collector struct {
	o           *elfreloc.Object // the object or image itself, also for the symbols of its debug file
	syms        *elfreloc.Symbols
	code        elfreloc.Code
	conventions arch.Conventions

	entries     []entry
	files       []uint32
	descriptors *descriptors
}

func (c *collector) collect() (err error) {
	if len(c.code) == 0 {
		return nil
	}
	if c.descriptors, err = readDescriptors(c.o, c.conventions); err != nil {
		return err
	}
	c.entries = make([]entry, 0, c.syms.Len())
	for i := 1; i < c.syms.Len(); i++ {
		s := c.syms.At(i)
		switch s.Type {
		case elf.STT_FILE:
			c.files = append(c.files, uint32(i))
		case elf.STT_FUNC, elf.STT_GNU_IFUNC, elf.STT_NOTYPE:
			if s.Defined() {
				c.add(i, s)
			}
		}
	}
	return nil
}

// add adds a symbol that is a function's.
func (c *collector) add(i int, s elfreloc.Symbol) {
	section, start, ok := c.place(s)
	if !ok {
		return
	}
	code := c.code.Find(section, start)
	if code < 0 || !mayName(s.Name, s.Type) || s.Type == elf.STT_NOTYPE && slices.Contains(c.conventions.LinkerStubNames, s.Name) {
		return
	}
	c.entries = append(c.entries, entry{code: code, start: start, size: s.Size, symbol: uint32(i), rank: rank(s)})
}

// place returns where the code of a symbol begins.
func (c *collector) place(s elfreloc.Symbol) (section int, start uint64, ok bool) {
	if c.o.Type == elf.ET_REL {
		section = s.Section
	}
	if c.descriptors.hold(section, s.Value) {
		return c.descriptors.entry(section, s.Value)
	}
	if s.Type != elf.STT_NOTYPE {
		s.Value &^= c.conventions.Mode
	}
	return section, s.Value, true
}

// mayName reports whether a function may be called by a name. Mapping symbols (ELF for
// the Arm Architecture, 5.5.5, and RISC-V's) and the labels of compilers and of
// assemblers name places in functions. dtrace -G adds a name of its own to functions.
func mayName(name string, typ elf.SymType) bool {
	if name == "" || strings.HasPrefix(name, ".L") || strings.HasPrefix(name, "$dtrace") {
		return false
	}
	if name[0] == '$' && len(name) == 2 && strings.IndexByte("adtx", name[1]) >= 0 { // mold's, which are of STT_FUNC
		return false
	}
	if typ != elf.STT_NOTYPE {
		return true
	}
	// GNU as calls the labels 1: and 1$: by such bytes ("Symbol Names").
	return name[0] != '$' && !strings.ContainsAny(shortName(name), "\x01\x02")
}

// shortName returns the beginning of a name. A hostile file may have many symbols share
// one long name.
func shortName(name string) string { return name[:min(len(name), 256)] }

// rankTypeless is the bit of symbols without a type in their rank.
const rankTypeless = 4

// rank orders the symbols of one address; the least is chosen.
func rank(s elfreloc.Symbol) uint8 {
	r := uint8(0)
	if s.Size == 0 {
		r += 8
	}
	if s.Type == elf.STT_NOTYPE {
		r += rankTypeless
	}
	switch s.Bind {
	case elf.STB_LOCAL:
		r += 2
	case elf.STB_WEAK:
		r++
	}
	return r
}

// sort sorts by code range, start, rank, name and index.
func (c *collector) sort() {
	slices.SortFunc(c.entries, func(a, b entry) int {
		if order := compareStarts(a, b); order != 0 {
			return order
		}
		return c.compareAliases(a, b)
	})
}

func (c *collector) compareAliases(a, b entry) int {
	if a.rank != b.rank {
		return cmp.Compare(a.rank, b.rank)
	}
	x, y := shortName(c.syms.Name(int(a.symbol))), shortName(c.syms.Name(int(b.symbol)))
	return cmp.Or(strings.Compare(x, y), cmp.Compare(a.symbol, b.symbol))
}

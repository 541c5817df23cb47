package elfreloc

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
)

// writeSymbols writes the symbol table in its new order, and the table of
// extended section indexes beside it where one is needed.
func (s *saver) writeSymbols() error {
	e := s.e
	if len(e.replacedSymbols)+len(e.removed)+len(e.added) == 0 {
		return nil
	}
	if s.o.symtab == 0 {
		return s.o.errorf("has no symbol table")
	}
	strtab := int(s.sections[s.o.symtab].Link)
	names, err := s.stringTable(strtab)
	if err != nil {
		return err
	}
	e.freeNames(names, strtab, e.renamed())

	size := s.o.Encoding.SymbolSize()
	w := &symbolWriter{s: s, size: size, table: make([]byte, s.numbers.len*size)}
	if s.o.shndx != 0 || e.needExtended() {
		w.extended = make([]byte, 4*s.numbers.len)
	}
	if err := w.writeAll(names); err != nil {
		return err
	}
	s.setData(s.o.symtab, w.table)
	s.sections[s.o.symtab].Info = uint32(s.numbers.firstGlobal)
	if w.extended == nil {
		return nil
	}
	if s.o.shndx != 0 {
		s.setData(s.o.shndx, w.extended)
		return nil
	}
	s.appendSection(Section{Name: ".symtab_shndx", Type: elf.SHT_SYMTAB_SHNDX, Link: uint32(s.o.symtab), Align: 4, Entsize: 4}, w.extended)
	return nil
}

// needExtended reports whether a new symbol, or one in a slot, is defined in a
// section whose index does not fit st_shndx.
func (e *Edit) needExtended() bool {
	exceedsShndx := func(sym Symbol) bool { return sym.Section >= int(elf.SHN_LORESERVE) }
	for _, sym := range e.replacedSymbols {
		if exceedsShndx(sym) {
			return true
		}
	}
	return slices.ContainsFunc(e.added, exceedsShndx)
}

// symbolWriter writes the new symbol table.
type symbolWriter struct {
	s        *saver
	size     int // of an entry, bytes
	table    []byte
	extended []byte // the new table of section indexes, nil if there is none
}

func (w *symbolWriter) writeAll(names *stringTable) error {
	e, final := w.s.e, w.s.numbers.final
	// Most symbols stay where they are. A displaced symbol's old slot gets another symbol, which
	// overwrites the copy.
	copy(w.table, e.symbols.raw)
	copy(w.extended, e.symbols.extended)
	for _, i := range w.s.numbers.displaced {
		copy(w.table[int(final[i])*w.size:], e.symbols.entry(int(i)))
		if e.symbols.extended != nil {
			copy(w.extended[4*final[i]:], e.symbols.extended[4*i:4*i+4])
		}
	}
	// In the order of the table, so that the same changes give the same bytes.
	for _, i := range e.renamed() {
		off := e.symbols.nameOffset(int(i))
		if sym, ok := e.replacedSymbols[i]; ok && !e.isRemoved(i) {
			w.put(w.position(i), sym, names.replace(off, sym.Name))
		} else {
			names.erase(off)
		}
	}
	for i, sym := range e.replacedSymbols {
		if sym.Name == e.symbols.Name(int(i)) && !e.isRemoved(i) {
			w.put(w.position(i), sym, e.symbols.nameOffset(int(i)))
		}
	}
	for i, sym := range e.added {
		w.put(final[e.symbols.Len()+i], sym, names.add(sym.Name))
	}
	if len(final) > int(^uint32(0)>>8) && w.s.o.Encoding.Class == elf.ELFCLASS32 {
		return w.s.o.errorf("%d symbols do not fit the relocations of a 32-bit object", len(final))
	}
	return nil
}

// position returns the index in the new table of an old symbol that stays.
func (w *symbolWriter) position(i uint32) uint32 {
	if _, ok := w.s.e.redirected[i]; ok {
		return i // local symbols do not move
	}
	return w.s.numbers.final[i]
}

// renamed lists the old symbols whose names may go.
func (e *Edit) renamed() []uint32 {
	var out []uint32
	for i, sym := range e.replacedSymbols {
		if sym.Name != e.symbols.Name(int(i)) {
			out = append(out, i)
		}
	}
	for i := range e.removed {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

func (e *Edit) isRemoved(i uint32) bool {
	_, ok := e.removed[i]
	return ok
}

func (w *symbolWriter) put(index uint32, sym Symbol, name uint32) {
	raw := rawSymbol{name: name, info: elf.ST_INFO(sym.Bind, sym.Type), other: sym.Other, value: sym.Value, size: sym.Size}
	switch {
	case sym.Section < 0:
		raw.shndx = uint16(sym.Section + 0x10000)
	case sym.Section >= int(elf.SHN_LORESERVE):
		raw.shndx = uint16(elf.SHN_XINDEX)
		w.s.o.Encoding.Order.PutUint32(w.extended[4*index:], uint32(sym.Section))
	default:
		raw.shndx = uint16(sym.Section)
	}
	if w.extended != nil && sym.Section < int(elf.SHN_LORESERVE) {
		clear(w.extended[4*index : 4*index+4])
	}
	w.s.o.Encoding.putSymbol(w.table[int(index)*w.size:], raw)
}

// numbering maps the symbol indexes of an Edit to the indexes of the new file.
//
// Local symbols come first in a symbol table, so a new local takes the slot of
// the first global, which moves to a slot that a removed symbol has freed, or
// else to the end. All other symbols stay where they are: what does not name a
// moved symbol need not be rewritten.
type numbering struct {
	final       []uint32 // by index in the Edit
	len         int      // symbols in the new table
	firstGlobal int
	displaced   []uint32 // the old symbols that have moved
	moved       bool     // whether an index of the old table has changed
}

func (e *Edit) number() numbering {
	old, first := e.symbols.Len(), e.symbols.FirstGlobal()
	var locals, globals []uint32
	for i, s := range e.added {
		if s.Bind == elf.STB_LOCAL {
			locals = append(locals, uint32(old+i))
		} else {
			globals = append(globals, uint32(old+i))
		}
	}
	n := numbering{
		final:       make([]uint32, old+len(e.added)),
		len:         old + len(e.added) - len(e.removed),
		firstGlobal: first + len(locals),
	}
	for i := range n.final {
		n.final[i] = uint32(i)
	}
	for i, s := range locals {
		n.final[s] = uint32(first + i)
	}
	n.displaced = e.displaced(n, first, old)
	n.moved = len(n.displaced)+len(e.removed)+len(e.redirected) > 0
	unplaced := append(slices.Clip(n.displaced), globals...)
	for i, slot := range e.freeSlots(n, old)[:len(unplaced)] {
		n.final[unplaced[i]] = slot
	}
	for gone, replacement := range e.removed {
		n.final[gone] = n.final[replacement]
	}
	for i, replacement := range e.redirected {
		n.final[i] = n.final[replacement]
	}
	return n
}

// displaced lists the old globals whose slots are local now, or beyond the end.
func (e *Edit) displaced(n numbering, first, old int) []uint32 {
	var out []uint32
	add := func(from, to int) {
		for i := from; i < to; i++ {
			if !e.isRemoved(uint32(i)) {
				out = append(out, uint32(i))
			}
		}
	}
	add(first, min(n.firstGlobal, old))
	add(max(n.len, n.firstGlobal, first), old)
	return out
}

// freeSlots lists the global slots of the new table that no old symbol keeps.
func (e *Edit) freeSlots(n numbering, old int) []uint32 {
	var out []uint32
	for i := range e.removed {
		if int(i) >= n.firstGlobal && int(i) < n.len {
			out = append(out, i)
		}
	}
	for i := max(old, n.firstGlobal); i < n.len; i++ {
		out = append(out, uint32(i))
	}
	slices.Sort(out)
	return out
}

// checkUsers refuses an object with a section that uses symbol indexes in a
// way that this package does not know, before they change. Those of relocations and groups
// are of the only symbol table to lld and mold, whatever table their section names.
func (e *Edit) checkUsers(moved bool) error {
	for i := range e.o.Sections {
		s := &e.o.Sections[i]
		if int(s.Link) != e.o.symtab && s.Size > 0 && (s.isRelocs() || s.Type == elf.SHT_GROUP) {
			return e.o.SectionError(i, fmt.Errorf("its symbols are of section %d, and the symbol table is section %d", s.Link, e.o.symtab))
		}
		if int(s.Link) != e.o.symtab || i == 0 || !moved {
			continue
		}
		switch s.Type {
		case elf.SHT_REL, elf.SHT_RELA, shtCREL, elf.SHT_GROUP, elf.SHT_SYMTAB_SHNDX, shtAddrsig, shtCallGraph:
		default:
			return e.o.SectionError(i, fmt.Errorf("unknown section type %#x uses the symbol table, whose symbols have to move", uint32(s.Type)))
		}
	}
	return nil
}

// addrsig rewrites a list of ULEB128 symbol indexes (LLVM's extensions to ELF,
// ".llvm_addrsig"). Symbols that are gone leave it.
func (e *Edit) addrsig(sec int, n numbering) ([]byte, error) {
	data, err := e.o.Data(sec)
	if err != nil {
		return nil, err
	}
	var out []byte
	for at := 0; at < len(data); {
		v, size := binary.Uvarint(data[at:])
		if size <= 0 || v >= uint64(e.symbols.Len()) {
			return nil, e.o.OffsetError(sec, uint64(at), fmt.Errorf("no symbol index"))
		}
		at += size
		if to := n.final[v]; to != 0 || v == 0 {
			out = binary.AppendUvarint(out, uint64(to))
		}
	}
	return out, nil
}

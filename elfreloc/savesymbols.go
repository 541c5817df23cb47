package elfreloc

import (
	"cmp"
	"debug/elf"
	"slices"
)

// writeSymbols writes the symbol table in its new order, and the table of
// extended section indexes beside it where one is needed.
func (s *saver) writeSymbols() error {
	e := s.e
	if len(e.slots)+len(e.removed)+len(e.added) == 0 {
		return nil
	}
	if s.o.symtab == 0 {
		return s.o.errorf("has no symbol table")
	}
	strtab := int(s.sections[s.o.symtab].Link)
	names, err := s.table(strtab)
	if err != nil {
		return err
	}
	e.freeNames(names, strtab, e.renamed())

	size := s.o.Encoding.SymbolSize()
	old := min(e.symbols.Len(), s.numbers.len)
	w := &symbolWriter{s: s, size: size, old: uint32(old), added: make([]byte, (s.numbers.len-old)*size)}
	if s.o.shndx != 0 || e.needExtended() {
		w.extended = make([]byte, 4*s.numbers.len)
	}
	if err := w.writeAll(names); err != nil {
		return err
	}
	table := &s.sections[s.o.symtab]
	s.content[s.o.symtab] = []Extent{
		{Src: int64(table.Offset), Len: int64(old * size), Rewrite: w.rewrite()},
		{Data: w.added, Len: int64(len(w.added))},
	}
	table.Size, table.Info = uint64(s.numbers.len*size), uint32(s.numbers.firstGlobal)
	if w.extended == nil {
		return nil
	}
	if s.o.shndx != 0 {
		s.setData(s.o.shndx, w.extended)
		return nil
	}
	s.add(Section{Name: ".symtab_shndx", Type: elf.SHT_SYMTAB_SHNDX, Link: uint32(s.o.symtab), Align: 4, Entsize: 4}, w.extended)
	return nil
}

// needExtended reports whether a new symbol, or one in a slot, is defined in a
// section whose index does not fit st_shndx.
func (e *Edit) needExtended() bool {
	needs := func(sym Symbol) bool { return sym.Section >= int(elf.SHN_LORESERVE) }
	for _, sym := range e.slots {
		if needs(sym) {
			return true
		}
	}
	return slices.ContainsFunc(e.added, needs)
}

// symbolWriter writes the entries of the new symbol table that are not those of the old one.
type symbolWriter struct {
	s        *saver
	size     int           // of an entry, bytes
	old      uint32        // entries that have a place in the old table
	changed  []symbolEntry // of these; of several for one place the last counts
	added    []byte        // the others, behind them
	extended []byte        // the new table of section indexes, nil if there is none
}

// symbolEntry is an entry of a symbol table, and its index.
type symbolEntry struct {
	index uint32
	raw   rawSymbol
}

// set sets an entry.
func (w *symbolWriter) set(index uint32, raw rawSymbol) {
	if index < w.old {
		w.changed = append(w.changed, symbolEntry{index, raw})
	} else {
		w.s.o.Encoding.putSymbol(w.added[int(index-w.old)*w.size:], raw)
	}
}

// rewrite returns what changes entries in blocks of the old table.
func (w *symbolWriter) rewrite() func(int64, []byte) error {
	l, size, changed := w.s.o.Encoding, w.size, w.changed
	slices.SortStableFunc(changed, func(a, b symbolEntry) int { return cmp.Compare(a.index, b.index) })
	return func(at int64, block []byte) error {
		first, count := int(at)/size, len(block)/size
		from, _ := slices.BinarySearchFunc(changed, first, func(x symbolEntry, first int) int { return cmp.Compare(int(x.index), first) })
		for _, x := range changed[from:] {
			if int(x.index) >= first+count {
				break
			}
			l.putSymbol(block[(int(x.index)-first)*size:], x.raw)
		}
		return nil
	}
}

func (w *symbolWriter) writeAll(names *stringTable) error {
	e, final := w.s.e, w.s.numbers.final
	// Most symbols stay where they are. The slots of those that do not have
	// new users, so what is copied there now is overwritten.
	copy(w.extended, e.symbols.extended)
	for _, i := range w.s.numbers.displaced {
		w.set(final[i], e.symbols.rawAt(int(i)))
		if e.symbols.extended != nil {
			copy(w.extended[4*final[i]:], e.symbols.extended[4*i:4*i+4])
		}
	}
	// In the order of the table, so that the same changes give the same bytes.
	for _, i := range e.renamed() {
		off := e.symbols.nameOffset(int(i))
		if sym, ok := e.slots[i]; ok && !e.isRemoved(i) {
			w.put(final[i], sym, names.replace(off, sym.Name))
		} else {
			names.erase(off)
		}
	}
	for i, sym := range e.slots {
		if sym.Name == e.symbols.Name(int(i)) && !e.isRemoved(i) {
			w.put(final[i], sym, e.symbols.nameOffset(int(i)))
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

// renamed lists the old symbols whose names may go.
func (e *Edit) renamed() []uint32 {
	var out []uint32
	for i, sym := range e.slots {
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
	w.set(index, raw)
}

package image

import (
	"debug/elf"
	"slices"
	"sort"

	"sdtconvert/elfreloc"
)

// dynamic is what PT_DYNAMIC says about tables: addresses, and sizes in bytes (gABI,
// "Dynamic Section"). 0 means that there is none.
type dynamic struct {
	rela, relaSize  uint64
	rel, relSize    uint64
	symtab          uint64
	strtab, strSize uint64
	hash, gnuHash   uint64
	packed          string // the format of relocations that are not supported, or ""
}

// Tags that debug/elf has no name for.
const (
	dtAndroidREL  = 0x6000000f
	dtAndroidRELA = 0x60000011
	dtCREL        = 0x40000026
)

func (l *linked) readDynamic(s elfreloc.Segment, base uint64) error {
	data, err := l.contents("the dynamic section", s.Vaddr, s.Filesz)
	if err != nil {
		return err
	}
	d := &l.dyn
	addresses := map[elf.DynTag]*uint64{elf.DT_RELA: &d.rela, elf.DT_REL: &d.rel, elf.DT_SYMTAB: &d.symtab,
		elf.DT_STRTAB: &d.strtab, elf.DT_HASH: &d.hash, elf.DT_GNU_HASH: &d.gnuHash}
	sizes := map[elf.DynTag]*uint64{elf.DT_RELASZ: &d.relaSize, elf.DT_RELSZ: &d.relSize, elf.DT_STRSZ: &d.strSize}
	word := l.o.Encoding.Word()
	for ; len(data) >= 2*word; data = data[2*word:] {
		tag, value := elf.DynTag(l.o.Encoding.GetWord(data)), l.o.Encoding.GetWord(data[word:])
		switch tag {
		case elf.DT_NULL:
			return nil
		case dtAndroidREL, dtAndroidRELA:
			d.packed = "Android's packed relocations"
		case dtCREL:
			d.packed = "CREL relocations"
		}
		if p := addresses[tag]; p != nil {
			*p = l.unrelocated(value, base)
		} else if p := sizes[tag]; p != nil {
			*p = value
		}
	}
	return nil
}

// unrelocated undoes what glibc does to the addresses in PT_DYNAMIC: in memory
// they have the load base added.
func (l *linked) unrelocated(addr, base uint64) uint64 {
	if _, ok := l.load(addr); !ok {
		if _, ok := l.load(addr - base); ok {
			return addr - base
		}
	}
	return addr
}

// dynamicRelocs are the relocations of words, which the loader applies.
type dynamicRelocs struct {
	loadBase, word     uint32 // their types
	relative, symbolic relocTable
	maxSym             uint32 // the highest symbol that is named
}

// last returns the last relocation of a field: with addends, each undoes the
// one before it.
func (t relocTable) last(off uint64) (r elfreloc.Relocation, ok bool) {
	i := sort.Search(len(t), func(i int) bool { return t[i].Offset > off })
	if i == 0 || t[i-1].Offset != off {
		return r, false
	}
	return t[i-1], true
}

// readRelocs reads the tables of PT_DYNAMIC. An image without it is a kernel or a static
// program, which relocates itself with the tables of sections.
func (l *linked) readRelocs() error {
	t := l.m.Traits()
	r := &dynamicRelocs{loadBase: t.LoadBase, word: t.Word}
	if l.dyn.packed != "" {
		return fileError(l.o, "has %s, which are not supported", l.dyn.packed)
	}
	var err error
	if l.dyn == (dynamic{}) {
		err = l.o.EachDynamic(r.add)
	} else if err = l.readRelocTable(r, l.dyn.rela, l.dyn.relaSize, true); err == nil {
		err = l.readRelocTable(r, l.dyn.rel, l.dyn.relSize, false)
	}
	if err != nil {
		return err
	}
	r.relative.sortByOffset()
	r.symbolic.sortByOffset()
	l.relocs = r
	return nil
}

func (l *linked) readRelocTable(r *dynamicRelocs, addr, size uint64, rela bool) error {
	if addr == 0 || size == 0 {
		return nil
	}
	data, err := l.contents("a table of dynamic relocations", addr, size)
	if err != nil {
		return err
	}
	r.relative = slices.Grow(r.relative, len(data)/24) // most are of this kind
	return l.o.ReadDynamic(data, rela, r.add)
}

// add adds a relocation if it is of a word. It never fails.
func (r *dynamicRelocs) add(d elfreloc.Relocation) error {
	switch d.Type {
	case r.loadBase:
		r.relative = append(r.relative, d)
	case r.word:
		r.maxSym = max(r.maxSym, d.Sym)
		r.symbolic = append(r.symbolic, d)
	}
	return nil
}

// dynamicSymbols reads the symbols that the loader sees: through their section
// header, which knows their number, or else through PT_DYNAMIC.
func (l *linked) dynamicSymbols() (*elfreloc.Symbols, error) {
	if l.dynsyms != nil {
		return l.dynsyms, nil
	}
	t, err := l.o.DynamicSymbols()
	if err == nil && t.Len() == 0 && l.dyn.symtab != 0 && l.dyn.strtab != 0 {
		t, err = l.loadedSymbols()
	}
	if err != nil {
		return nil, err
	}
	l.dynsyms = t
	return t, nil
}

func (l *linked) loadedSymbols() (*elfreloc.Symbols, error) {
	count, err := l.countSymbols()
	if err != nil {
		return nil, err
	}
	entries, err := l.contents("the dynamic symbol table", l.dyn.symtab, count*uint64(l.o.Encoding.SymbolSize()))
	if err != nil {
		return nil, err
	}
	strings, err := l.contents("the dynamic string table", l.dyn.strtab, l.dyn.strSize)
	if err != nil {
		return nil, err
	}
	return l.o.MakeSymbols(entries, strings)
}

// countSymbols returns the number of dynamic symbols, which no tag tells. DT_HASH has
// a chain entry for each of them. DT_GNU_HASH has one for each that is defined;
// an undefined one behind these matters only if a relocation names it.
func (l *linked) countSymbols() (uint64, error) {
	if l.dyn.hash != 0 {
		// A number of buckets, and then of chain entries.
		if l.m.Traits().WideHash {
			head, err := l.contents("the hash table", l.dyn.hash, 16)
			if err != nil {
				return 0, err
			}
			u64, size := l.o.Encoding.Order.Uint64, uint64(l.o.Size())
			// lld and mold write entries of 4 bytes all the same. Two of them make more
			// buckets than a file holds.
			if u64(head) <= size {
				return min(u64(head[8:]), size), nil
			}
		}
		head, err := l.contents("the hash table", l.dyn.hash, 8)
		if err != nil {
			return 0, err
		}
		return uint64(l.o.Encoding.Order.Uint32(head[4:])), nil
	}
	if l.relocs == nil && l.dyn.packed == "" {
		if err := l.readRelocs(); err != nil {
			return 0, err
		}
	}
	count := uint64(0)
	if l.relocs != nil && l.relocs.maxSym > 0 {
		count = uint64(l.relocs.maxSym) + 1
	}
	if l.dyn.gnuHash == 0 {
		return count, nil
	}
	hashed, err := l.countHashed()
	return max(count, hashed), err
}

// countHashed returns the number of symbols up to the last in DT_GNU_HASH. The table
// is four words (the number of buckets, the first symbol, the number of words in
// the filter, a shift), the filter, the buckets, and a chain entry a symbol. The
// last symbol is the end of the chain that starts last.
func (l *linked) countHashed() (uint64, error) {
	head, err := l.contents("the GNU hash table", l.dyn.gnuHash, 16)
	if err != nil {
		return 0, err
	}
	u32 := l.o.Encoding.Order.Uint32
	buckets, first, filter := uint64(u32(head)), uint64(u32(head[4:])), uint64(u32(head[8:]))
	at := l.dyn.gnuHash + 16 + filter*uint64(l.o.Encoding.Word())
	table, err := l.contents("the buckets of the GNU hash table", at, 4*buckets)
	if err != nil {
		return 0, err
	}
	last := uint64(0)
	for ; len(table) > 0; table = table[4:] {
		last = max(last, uint64(u32(table)))
	}
	if last < first {
		return first, nil // nothing is hashed
	}
	at += 4*buckets + 4*(last-first)
	for last*uint64(l.o.Encoding.SymbolSize()) <= uint64(l.o.Size()) {
		chain, err := l.contents("a chain of the GNU hash table", at, min(l.available(at)&^3, 4096))
		if err != nil {
			return 0, err
		}
		if len(chain) == 0 {
			break
		}
		at += uint64(len(chain))
		for ; len(chain) > 0; chain = chain[4:] {
			if last++; u32(chain)&1 != 0 {
				return last, nil
			}
		}
	}
	return 0, l.errorAt(l.dyn.gnuHash, "a chain of the GNU hash table has no end")
}

package elfreloc

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
)

// numbering maps the symbol indexes of an Edit to those of the new file.
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
	n.moved = len(n.displaced) > 0 || len(e.removed) > 0
	homeless := append(slices.Clip(n.displaced), globals...)
	for i, slot := range e.freeSlots(n, old)[:len(homeless)] {
		n.final[homeless[i]] = slot
	}
	for gone, by := range e.removed {
		n.final[gone] = n.final[by]
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

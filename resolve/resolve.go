// Package resolve answers which function holds an address.
//
// In a relocatable object an address is a section and an offset in it, so the
// functions of one section never answer for another.
package resolve

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
)

// Function is a symbol that stands for code.
type Function struct {
	Name    string
	Symbol  int    // its index in the symbol table
	Section int    // the section that defines it
	Start   uint64 // offset in Section
	Size    uint64 // bytes; 0 when unknown: it ends where the next one starts
}

// Table holds the functions of one object, sorted by section and offset.
type Table struct {
	functions []Function
	// enclosing[i] is the nearest function before i that does not end before
	// i starts, or -1: the one to ask when i does not hold an address.
	enclosing []int
}

// FromObject makes the table of a relocatable object.
//
// Functions are STT_FUNC and STT_GNU_IFUNC symbols, and the typeless ones that
// assembly leaves in code; mapping symbols ($x) and local labels (.L) are not.
// Where several symbols name one place, a sized one comes before an unsized, a
// typed before a typeless, a global before a weak before a local, and then the
// name decides.
func FromObject(o *elfreloc.Object) (*Table, error) {
	syms, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	t := &Table{}
	var ranks []int
	var order []int
	for i := 1; i < syms.Len(); i++ {
		s := syms.At(i)
		if !isFunction(o, s) {
			continue
		}
		order = append(order, len(t.functions))
		t.functions = append(t.functions, Function{s.Name, i, s.Section, s.Value, s.Size})
		ranks = append(ranks, rank(s))
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &t.functions[a], &t.functions[b]
		return cmp.Or(cmp.Compare(x.Section, y.Section), cmp.Compare(x.Start, y.Start),
			cmp.Compare(ranks[a], ranks[b]), strings.Compare(x.Name, y.Name), cmp.Compare(a, b))
	})
	sorted := make([]Function, 0, len(order))
	for _, i := range order {
		f := t.functions[i]
		if n := len(sorted); n > 0 && sorted[n-1].Section == f.Section && sorted[n-1].Start == f.Start {
			continue // an alias
		}
		sorted = append(sorted, f)
	}
	t.functions = sorted
	t.nest()
	return t, nil
}

func isFunction(o *elfreloc.Object, s elfreloc.Symbol) bool {
	if !s.Defined() || !o.Sections[s.Section].Executable() || s.Name == "" {
		return false
	}
	switch s.Type {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		return true
	case elf.STT_NOTYPE:
		return !strings.HasPrefix(s.Name, "$") && !strings.HasPrefix(s.Name, ".L")
	}
	return false
}

// rank orders the symbols of one place; the least is chosen.
func rank(s elfreloc.Symbol) int {
	r := 0
	if s.Size == 0 {
		r += 8
	}
	if s.Type == elf.STT_NOTYPE {
		r += 4
	}
	switch s.Bind {
	case elf.STB_LOCAL:
		r += 2
	case elf.STB_WEAK:
		r++
	}
	return r
}

func (t *Table) nest() {
	t.enclosing = make([]int, len(t.functions))
	for i := range t.functions {
		f := &t.functions[i]
		j := i - 1
		for j >= 0 && (t.functions[j].Section != f.Section || !t.functions[j].holds(f.Start)) {
			j = t.enclosing[j]
		}
		t.enclosing[i] = j
	}
}

// holds reports whether a sized function extends over off.
func (f *Function) holds(off uint64) bool { return off-f.Start < f.Size }

// Lookup returns the innermost function that holds offset off of a section. A
// function of unknown size holds what lies before the next one.
func (t *Table) Lookup(section int, off uint64) (Function, bool) {
	i, found := slices.BinarySearchFunc(t.functions, off, func(f Function, off uint64) int {
		return cmp.Or(cmp.Compare(f.Section, section), cmp.Compare(f.Start, off))
	})
	if !found {
		i--
	}
	if i < 0 || t.functions[i].Section != section {
		return Function{}, false
	}
	if t.functions[i].Size == 0 {
		return t.functions[i], true
	}
	for ; i >= 0 && t.functions[i].Section == section; i = t.enclosing[i] {
		if t.functions[i].holds(off) {
			return t.functions[i], true
		}
	}
	return Function{}, false
}

// Place shows an address as function+offset, or "" when no function holds it.
func (t *Table) Place(section int, off uint64) string {
	f, ok := t.Lookup(section, off)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s+%#x", f.Name, off-f.Start)
}

package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/patch"
)

// scopedSemaphore is a semaphore of one image, or of all objects.
type scopedSemaphore struct {
	scope int
	id    semaphoreID
}

// mayBeSemaphore reports whether a symbol has the name of a semaphore.
func mayBeSemaphore(name string) bool {
	return strings.HasPrefix(name, patch.GuardPrefix) || strings.HasSuffix(name, stapsdt.SemaphoreSuffix)
}

// guardReads notes the semaphores that the code of a file reads, by their symbols. What only
// defines one is not a guard: objects of provider files do, and linkers keep the semaphores of
// functions that they drop.
func (c *fileChecker) guardReads() error {
	found, err := c.NamesContain([][]byte{[]byte(patch.GuardPrefix), []byte(stapsdt.SemaphoreSuffix)})
	if err != nil || !found {
		return err
	}
	syms, err := c.Symbols()
	if err != nil {
		return err
	}
	symbols := map[uint32]*semaphore{}
	for i := 1; i < syms.Len(); i++ {
		if !mayBeSemaphore(syms.Name(i)) {
			continue
		}
		s := syms.At(i)
		sem := &semaphore{id: c.semaphoreID(c.symbolRef(&s)), name: s.Name}
		inSection := s.Section > 0 && s.Section < len(c.Sections) && stapsdt.HoldsSemaphores(&c.Sections[s.Section])
		if inSection {
			c.link.inSections[scopedSemaphore{c.scope(), sem.id}] = true
		}
		if inSection || c.relocatable() {
			symbols[uint32(i)] = sem
		}
	}
	if c.relocatable() {
		return c.readsOfObject(symbols)
	}
	return c.readsOfImage(symbols)
}

// readsOfObject notes which of the symbols code refers to, by its relocations.
func (c *fileChecker) readsOfObject(symbols map[uint32]*semaphore) error {
	if len(symbols) == 0 {
		return nil
	}
	none, first := c.Machine.Traits().None, map[uint32]image.Addr{}
	err := c.EachRelocationOf((*elfreloc.Section).Executable, func(target int, r elfreloc.Relocation) error {
		if _, known := first[r.Sym]; !known && r.Type != none && symbols[r.Sym] != nil {
			first[r.Sym] = image.Addr{Section: target, Offset: r.Offset}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, sym := range slices.Sorted(maps.Keys(first)) {
		if err := c.readAt(symbols[sym], first[sym]); err != nil {
			return err
		}
	}
	return nil
}

// readsOfImage records which of the semaphores code reads, on machines that are an arch.Reader.
func (c *fileChecker) readsOfImage(symbols map[uint32]*semaphore) error {
	reader, ok := c.Machine.(arch.Reader)
	if !ok || len(symbols) == 0 {
		return nil
	}
	at, lo, hi := map[uint64]*semaphore{}, ^uint64(0), uint64(0)
	for _, sym := range slices.Sorted(maps.Keys(symbols)) {
		s := symbols[sym]
		address := s.id.at.Offset
		if other := at[address]; other == nil || cmp.Compare(s.name, other.name) < 0 {
			at[address] = s
		}
		lo, hi = min(lo, address), max(hi, address+1)
	}
	first := map[uint64]uint64{} // the code that reads it, by the address of the semaphore
	if err := c.eachCode(arch.ReadWindow, func(code []byte, pc uint64) {
		reader.Reads(code, pc, c.globalOffsetTable(), lo, hi, func(from, address uint64) {
			if _, known := first[address]; !known && at[address] != nil {
				first[address] = from
			}
		})
	}); err != nil {
		return err
	}
	for _, address := range slices.Sorted(maps.Keys(first)) {
		if err := c.readAt(at[address], image.Addr{Offset: first[address]}); err != nil {
			return err
		}
	}
	return nil
}

// eachCode calls f with the code of an image, in pieces that overlap.
func (c *fileChecker) eachCode(overlap uint64, f func(code []byte, pc uint64)) error {
	s := &linkedStubs{fileChecker: c, overlap: overlap}
	return s.sections(func(sec *elfreloc.Section) func([]byte, uint64) error {
		if !sec.Executable() {
			return nil
		}
		return func(code []byte, pc uint64) error {
			f(code, pc)
			return nil
		}
	})
}

// globalOffsetTable returns the address of that table, 0 where there is none.
func (c *fileChecker) globalOffsetTable() uint64 {
	if table := c.sectionNamed(".got"); table != nil {
		return table.Addr
	}
	return 0
}

// readAt records that code reads a semaphore. Its finding has the semaphore's name in place of a probe:
// where the provider's name ends is unknown.
func (c *fileChecker) readAt(s *semaphore, at image.Addr) error {
	probe, isGuard := strings.CutPrefix(s.name, patch.GuardPrefix)
	if !isGuard {
		probe = strings.TrimSuffix(s.name, stapsdt.SemaphoreSuffix)
	}
	f, err := c.finding(DeadGuard, at, probe, "")
	if err != nil {
		return err
	}
	s.finding = *f
	c.link.guardReads[c.scope()] = append(c.link.guardReads[c.scope()], *s)
	return nil
}

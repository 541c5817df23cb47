package check

import (
	"debug/elf"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/linkerset"
)

// page is the size of the smallest pages of the machines that are known, in bytes.
// What shares one of these shares one of the larger ones.
const page = 4096

// noteTest records which semaphore an is-enabled test of a probe loads, or that it loads none.
func (c *fileChecker) noteTest(e *linkerset.Entry, probe linkerset.Probe) {
	loaded, ok, err := c.states.Semaphore(e)
	c.fail(err)
	guard := semaphore{id: c.semaphoreID(loaded)}
	if ok {
		guard.name = c.semaphoreName(loaded)
	}
	guard.finding = c.finding(DeadGuard, e.Site, nameOf(probe), "")
	c.addGuard(noteID(probe), guard)
}

// checkSemaphorePlace checks where an image has a semaphore that its notes name. Tracers tell the
// kernel its place in the file, and the kernel counts in the first writable mapping of
// that place.
func (c *fileChecker) checkSemaphorePlace(at image.Addr, probe string) {
	name := c.semaphoreName(image.Ref{Addr: at})
	segments, err := c.Segments()
	if c.fail(err) {
		return
	}
	if why := unreachable(segments, at.Offset); why != "" {
		c.add(SemaphorePlace, at, probe, "the semaphore %s is %s", name, why)
		return
	}
	if sec := c.sectionAt(at.Offset); sec != nil && sec.Name != stapsdt.SemaphoreSection {
		c.add(SemaphoreSection, at, probe, "the semaphore %s is in %s; bcc, and bpftrace where it uses bcc, know it in %s alone", name, sec.Name, stapsdt.SemaphoreSection)
	}
	if other := mappedBefore(segments, at.Offset); other != nil {
		c.add(EarlySemaphore, at, probe, "the page of the semaphore %s is in the file's segment at %#x too; a tracer that starts the program counts there", name, other.Vaddr)
	}
}

// loaded finds the segment that holds a semaphore.
func loaded(segments []elfreloc.Segment, addr uint64) *elfreloc.Segment {
	for i := range segments {
		if s := &segments[i]; s.Type == elf.PT_LOAD && addr >= s.Vaddr && s.Memsz >= stapsdt.SemaphoreSize && addr-s.Vaddr <= s.Memsz-stapsdt.SemaphoreSize {
			return s
		}
	}
	return nil
}

// unreachable says why the kernel cannot count in a semaphore, "" where it can.
func unreachable(segments []elfreloc.Segment, addr uint64) string {
	s := loaded(segments, addr)
	switch {
	case s == nil:
		return "not in the image"
	case s.Flags&elf.PF_W == 0:
		return "in memory that cannot be written"
	case s.Filesz < stapsdt.SemaphoreSize || addr-s.Vaddr > s.Filesz-stapsdt.SemaphoreSize:
		return "in no place of the file, by which tracers name it to the kernel"
	}
	for i := range segments {
		// Loaders protect whole pages, and leave the page that the range ends in writable.
		r := &segments[i]
		if end := (r.Vaddr + r.Memsz) &^ (page - 1); r.Type == elf.PT_GNU_RELRO && addr >= r.Vaddr && addr < end {
			return "in memory that cannot be written once the program has started (PT_GNU_RELRO)"
		}
	}
	return ""
}

// mappedBefore finds another writable segment whose mapping has the semaphore's place in
// the file too, at lower addresses, nil for none: in some linkers' images the segment
// that is protected after the start ends in the page in which that of data begins.
func mappedBefore(segments []elfreloc.Segment, addr uint64) *elfreloc.Segment {
	segment := loaded(segments, addr)
	offset := segment.Offset + (addr - segment.Vaddr)
	for i := range segments {
		s := &segments[i]
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_W == 0 || s.Vaddr >= segment.Vaddr || s.Filesz == 0 {
			continue
		}
		first := s.Offset &^ (page - 1)
		size := (s.Vaddr+s.Filesz+page-1)&^(page-1) - s.Vaddr&^(page-1)
		if offset >= first && offset-first < size {
			return s
		}
	}
	return nil
}

// sectionAt finds the section that holds an address of an image, nil where section
// headers do not tell.
func (c *fileChecker) sectionAt(addr uint64) *elfreloc.Section {
	for i := range c.Sections {
		if s := &c.Sections[i]; s.Flags&elf.SHF_ALLOC != 0 && addr >= s.Addr && addr-s.Addr < s.Size {
			return s
		}
	}
	return nil
}

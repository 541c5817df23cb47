package resolve

import (
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
)

// The unwind tables of .eh_frame are there in stripped images too: C++ and the
// stack traces of everything else need them. What is read of them is where
// functions begin and how long they are.
//
// The format is that of the LSB, "Exception Frames" (Core, Generic, 10.6), which
// is DWARF's .debug_frame with pointers of several encodings.

// frame is a function of an unwind table, or of a descriptor.
type frame struct {
	start, size uint64 // size is 0 if the function ends where the next one begins
	kind        frameKind
}

// frameKind is what a frame is from.
type frameKind uint8

const (
	frameWhole     frameKind = iota // .eh_frame
	frameIndexed                    // .ARM.exidx
	frameDescribed                  // a descriptor
)

// frameSources is by frameKind.
var frameSources = [...]Source{frameWhole: EhFrame, frameIndexed: Exidx, frameDescribed: Descriptors}

// endsUnknown reports whether another function may begin within the frame.
func (k frameKind) endsUnknown() bool { return k != frameWhole }

// readUnnamed reads the functions of an image that need no symbols. After errors they are
// those that could be read.
func readUnnamed(o *elfreloc.Object, conventions arch.Conventions) ([]frame, error) {
	frames, err := readFrames(o)
	if conventions.UnwindIndex != 0 {
		indexed, moreErr := readIndex(o, conventions)
		frames, err = append(frames, indexed...), errors.Join(err, moreErr)
	}
	d, moreErr := readDescriptors(o, conventions)
	return append(frames, d.frames()...), errors.Join(err, moreErr)
}

// readFrames reads the frames of an image. After an error they are those in
// front of it.
func readFrames(o *elfreloc.Object) ([]frame, error) {
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Name != ".eh_frame" || !s.InFile() {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		frames, off, err := parseFrames(data, s.Addr, o.Encoding, false)
		if err != nil {
			return frames, o.OffsetError(i, uint64(off), err)
		}
		return frames, nil
	}
	if len(o.Sections) > 0 {
		return nil, nil
	}
	return loadedFrames(o)
}

// loadedFrames finds .eh_frame as the unwinder of a running program does:
// PT_GNU_EH_FRAME is .eh_frame_hdr, which points to it (LSB, 10.6.2).
func loadedFrames(o *elfreloc.Object) ([]frame, error) {
	segments, err := o.Segments()
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		if s.Type != elf.PT_GNU_EH_FRAME {
			continue
		}
		header, err := loaded(o, segments, s.Vaddr)
		if err != nil {
			return nil, err
		}
		if len(header) < 4 || header[0] != 1 {
			return nil, fmt.Errorf("%s: .eh_frame_hdr at %#x is not of version 1", o.Name, s.Vaddr)
		}
		addr, err := debuginfo.EhFrame(header, s.Vaddr, o.Encoding)
		if err != nil {
			return nil, fmt.Errorf("%s: .eh_frame_hdr at %#x: %w", o.Name, s.Vaddr, err)
		}
		data, err := loaded(o, segments, addr)
		if err != nil {
			return nil, err
		}
		frames, off, err := parseFrames(data, addr, o.Encoding, true)
		if err != nil {
			err = fmt.Errorf("%s: .eh_frame at %#x: %w", o.Name, addr+uint64(off), err)
		}
		return frames, err
	}
	return nil, nil
}

// loaded reads what a segment holds from an address to its end.
func loaded(o *elfreloc.Object, segments []elfreloc.Segment, addr uint64) ([]byte, error) {
	for _, s := range segments {
		if off := addr - s.Vaddr; s.Type == elf.PT_LOAD && addr >= s.Vaddr && off < s.Filesz && s.Offset <= math.MaxInt64-s.Filesz {
			return o.ReadFile(int64(s.Offset+off), int64(s.Filesz-off))
		}
	}
	return nil, fmt.Errorf("%s: address %#x is not loaded", o.Name, addr)
}

// frameEntries sorts frames for makeSpans. Linkers leave frames of functions that
// they have removed: those are of size 0, or at addresses without code.
func frameEntries(code elfreloc.Code, frames []frame) []entry {
	entries := make([]entry, 0, len(frames))
	for _, f := range frames {
		if f.size == 0 && f.kind == frameWhole || len(code) == 0 {
			continue
		}
		if r := code.Find(0, f.start); r >= 0 {
			entries = append(entries, entry{code: r, start: f.start, size: f.size, frame: f.kind})
		}
	}
	// The first of one start stays first.
	slices.SortStableFunc(entries, compareStarts)
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.start == b.start })
	for i := range entries {
		if e := &entries[i]; e.size == 0 {
			e.size = code[e.code].End - e.start
			if i+1 < len(entries) && entries[i+1].code == e.code {
				e.size = entries[i+1].start - e.start
			}
		}
	}
	return entries
}

// parseFrames reads .eh_frame, which is loaded at addr. off is where an error was met.
func parseFrames(data []byte, addr uint64, l elfreloc.Encoding, stop bool) (frames []frame, off int, err error) {
	const usual = 32 // bytes of an FDE, at least
	frames = make([]frame, 0, len(data)/usual)
	for f, err := range debuginfo.UnwindFunctions(data, addr, l, stop) {
		if err != nil {
			return frames, f.Offset, err
		}
		frames = append(frames, frame{start: f.Start, size: f.Size})
	}
	return frames, 0, nil
}

// Arm's own unwind tables: .ARM.exidx has an entry of two words for each function,
// sorted by address. The first word is the distance from itself to the function, the
// second how to unwind: in its bits, by the distance to .ARM.extab, or not at all
// (Exception Handling ABI for the Arm Architecture, 6).
//
// A linker keeps one of neighbouring entries that say the same in their bits, and
// assembly may have no entries. So another function may begin before the next entry.

const (
	exidxEntry = 8
	cantUnwind = 1 // EXIDX_CANTUNWIND
)

// readIndex reads .ARM.exidx. After an error the frames are those in front of it.
func readIndex(o *elfreloc.Object, conventions arch.Conventions) ([]frame, error) {
	data, addr, err := findIndex(o, conventions)
	if err != nil {
		return nil, err
	}
	var frames []frame
	last := uint64(0)
	for at := uint64(0); at+exidxEntry <= uint64(len(data)); at += exidxEntry {
		distance, how := o.Encoding.Order.Uint32(data[at:]), o.Encoding.Order.Uint32(data[at+4:])
		start := uint64(uint32(addr+at) + uint32(int32(distance<<1)>>1))
		if distance>>31 != 0 || at > 0 && start <= last {
			return frames, fmt.Errorf("%s: .ARM.exidx at %#x: not in the order of addresses", o.Name, addr+at)
		}
		if n := len(frames); n > 0 && frames[n-1].size == 0 {
			frames[n-1].size = start - frames[n-1].start
		}
		last = start
		if how != cantUnwind { // which linkers put behind the last function of a section, too
			frames = append(frames, frame{start: start, kind: frameIndexed})
		}
	}
	return frames, nil
}

// findIndex returns the contents and the address of .ARM.exidx, nil if there is none.
func findIndex(o *elfreloc.Object, conventions arch.Conventions) (data []byte, addr uint64, err error) {
	for i := range o.Sections {
		if s := &o.Sections[i]; s.Type == conventions.UnwindIndex && s.InFile() {
			data, err = o.Data(i)
			return data, s.Addr, err
		}
	}
	if len(o.Sections) > 0 {
		return nil, 0, nil
	}
	segments, err := o.Segments()
	if err != nil {
		return nil, 0, err
	}
	for _, s := range segments {
		if s.Type == conventions.UnwindSegment {
			data, err = loaded(o, segments, s.Vaddr)
			return data[:min(uint64(len(data)), s.Filesz)], s.Vaddr, err
		}
	}
	return nil, 0, nil
}

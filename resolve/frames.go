package resolve

import (
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
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

// frameKind is what a frame is from. It stands where the rank of a symbol does.
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
		more, moreErr := readIndex(o, conventions)
		frames, err = append(frames, more...), errors.Join(err, moreErr)
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
		r := newReader(header, s.Vaddr, o.Encoding)
		r.Skip(4) // the version and three encodings
		addr := r.pointer(header[1])
		if err := r.Err(); err != nil {
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

// cie is what a Common Information Entry says of the FDEs that refer to it.
type cie struct {
	encoding byte // of addresses
	sized    bool // whether augmentation data with its length follows
}

// parseFrames reads .eh_frame, which is loaded at addr. A length of zero ends it
// for an unwinder; a section may hold more behind it, if the file that ends the
// list was not linked last. off is where an error was met.
func parseFrames(data []byte, addr uint64, l elfreloc.Encoding, stop bool) (frames []frame, off int, err error) {
	cies := make(map[int]cie)
	const usual = 32 // bytes of an FDE, at least
	frames = make([]frame, 0, len(data)/usual)
	r := newReader(data, addr, l)
	for r.At < len(data) {
		off = r.At
		body := r.entry()
		if !body.Bad() && body.At == len(body.Data) {
			if stop {
				break
			}
			continue
		}
		field := body.At
		if id := int(body.U32()); id == 0 && !body.Bad() {
			cies[off] = body.cie()
		} else if owner, ok := cies[field-id]; ok { // the distance from the field itself
			if f := body.fde(owner); !body.Bad() {
				frames = append(frames, f)
			}
		} else {
			body.fail("no CIE %#x bytes before the pointer to it", id)
		}
		if err := body.Err(); err != nil {
			return frames, off, err
		}
	}
	return frames, 0, nil
}

// cie reads a CIE behind its ID.
func (r *reader) cie() (parsed cie) {
	version := r.U8()
	if version != 1 && version != 3 {
		r.fail("CIE of version %d", version)
	}
	augmentation := string(r.Text())
	r.SkipLEB() // code alignment
	r.SkipLEB() // data alignment
	if version == 1 {
		r.U8()
	} else {
		r.SkipLEB() // the column of the return address
	}
	if augmentation == "" {
		return parsed
	}
	if augmentation[0] != 'z' {
		r.fail("CIE of augmentation %q", augmentation)
	}
	parsed.sized = true
	n := r.Uleb()
	data := r.Take(n)
	if r.Bad() {
		return parsed
	}
	r.Data, r.At = r.Data[:r.At], r.At-len(data)
	for _, letter := range augmentation[1:] {
		r.augmentation(letter, &parsed)
	}
	return parsed
}

// augmentation reads what a letter of the augmentation stands for.
func (r *reader) augmentation(letter rune, parsed *cie) {
	switch letter {
	case 'S', 'B', 'G': // a signal's frame; arm64's B key, and tagged frames
	case 'L': // the encoding of the address of a function's data
		r.U8()
	case 'R': // the encoding of addresses of code
		parsed.encoding = r.U8()
		r.formatOf(parsed.encoding)
	case 'P': // the personality routine
		r.skipPointer(r.U8())
	default:
		r.fail("CIE of augmentation %q", letter)
	}
}

// fde reads an FDE behind the pointer to its CIE.
func (r *reader) fde(owner cie) (f frame) {
	f.start = r.pointer(owner.encoding)
	f.size = r.pointer(owner.encoding & formatMask)
	if owner.sized {
		r.Skip(r.Uleb())
	}
	return f
}

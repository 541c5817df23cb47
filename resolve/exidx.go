package resolve

import (
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

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

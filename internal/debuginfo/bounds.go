package debuginfo

import (
	"bytes"
	"cmp"
	"debug/dwarf"
	"fmt"
)

// Package debug/dwarf is made for files of compilers: one broken unit makes it refuse the
// file, and it decodes tables and strings as often as they are named. Here is what keeps
// it within bounds that the file's size sets: prepare looks at all headers and tables of
// abbreviations before, and charge at each entry after it was decoded.

// maxAttrs bounds how many attributes an entry has; some take no byte of it.
const maxAttrs = 128

// The forms of values that matter here (section 7.5.6).
const (
	formImplicitConst = 0x21
	formLast          = 0x2c // of those that are numbered one by one; there is no 2
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
)

// The types of units (section 7.5.1).
const (
	utCompile  = 1
	utPartial  = 3
	utSkeleton = 4
)

// header is the header of a unit (section 7.5.1).
type header struct {
	start, body, end uint64 // offsets in .debug_info: of its length, of what follows that, and of the next unit
	wide             bool   // 64-bit DWARF
	version          uint16
	kind             uint8 // before DWARF 5 that of a compilation unit
	addrSize         uint8
	abbrevs          uint64 // in .debug_abbrev
	first            uint64 // offset of the first entry
}

// prepare reads the headers of all units, and makes t.info. A unit that debug/dwarf would
// refuse loses its entries. The error is the first fault.
func (t *Data) prepare() (headers []header, err error) {
	info, err := t.sections.data(debugInfo)
	if err != nil {
		return nil, err
	}
	abbrevs, err := t.sections.data(debugAbbrev)
	if err != nil {
		return nil, err
	}
	checked := make(map[uint64]error)
	whole := info
	for c := t.cursor(info); c.at < len(info); {
		h := header{start: uint64(c.at)}
		if !h.read(&c) {
			err = cmp.Or(err, t.sections.fault(debugInfo, h.start, "a header that makes no sense"))
			info = info[:h.start]
			break
		}
		if h.end == h.body {
			continue // padding
		}
		if h.version >= 2 && h.version <= 5 {
			fault := t.checkUnit(&h, abbrevs, checked)
			if fault == nil {
				headers = append(headers, h)
				continue
			}
			err = cmp.Or(err, fault)
		}
		if &info[0] == &whole[0] {
			info = bytes.Clone(info)
		}
		h.clear(t, info, uint64(len(abbrevs)))
	}
	if len(headers) == 0 {
		return nil, err
	}
	return headers, cmp.Or(err, t.open(info, abbrevs))
}

// checkUnit looks at what a unit needs that it can be read. checked has the tables of
// abbreviations that were looked through, by offset.
func (t *Data) checkUnit(h *header, abbrevs []byte, checked map[uint64]error) error {
	if h.addrSize != 4 && h.addrSize != 8 {
		return t.sections.fault(debugInfo, h.start, "addresses of %d bytes", h.addrSize)
	}
	fault, ok := checked[h.abbrevs]
	if !ok {
		fault = t.checkAbbrevs(abbrevs, h.abbrevs)
		checked[h.abbrevs] = fault
	}
	return fault
}

// read reads a header, and leaves c behind the unit. It reports whether the unit lies in
// the section.
func (h *header) read(c *cursor) bool {
	var length uint64
	length, h.wide = c.length()
	h.body = uint64(c.at)
	h.end = h.body + length
	least := uint64(2 + 4 + 1)
	if h.wide {
		least += 4
	}
	if c.bad() || length > uint64(len(c.data)-c.at) || length > 0 && length < least {
		return false
	}
	if length > 0 {
		h.version, h.kind = c.u16(), utCompile
		if h.version < 5 {
			h.abbrevs = c.word(h.wide)
			h.addrSize = c.u8()
		} else {
			h.kind, h.addrSize = c.u8(), c.u8()
			h.abbrevs = c.word(h.wide)
			if h.kind == utSkeleton {
				c.skip(8) // of the .dwo file
			}
		}
		h.first = uint64(c.at)
	}
	c.at = int(min(h.end, uint64(len(c.data))))
	return !c.bad() && h.first <= h.end
}

// clear makes a unit one of DWARF 4 without abbreviations, and so without entries.
func (h *header) clear(t *Data, info []byte, end uint64) {
	order := t.o.Encoding.Order
	order.PutUint16(info[h.body:], 4)
	if h.wide {
		order.PutUint64(info[h.body+2:], end)
		info[h.body+10] = 8
		return
	}
	order.PutUint32(info[h.body+2:], uint32(end))
	info[h.body+6] = 8
}

// checkAbbrevs looks through the table of abbreviations at an offset (section 7.5.3).
func (t *Data) checkAbbrevs(abbrevs []byte, off uint64) error {
	if off > uint64(len(abbrevs)) {
		return t.sections.fault(debugAbbrev, off, "beyond the end at %#x", len(abbrevs))
	}
	abbrevs = abbrevs[off:]
	c := cursor{data: abbrevs[:min(uint64(len(abbrevs)), t.sections.left(debugAbbrev, 2))]}
	for c.uleb() != 0 && !c.bad() {
		c.skipLEB() // tag
		c.u8()      // whether it has children
		for n := 0; !c.bad(); n++ {
			name, form := c.uleb(), c.uleb()
			if form == formImplicitConst {
				c.skipLEB()
			}
			if name == 0 && form == 0 {
				break
			}
			if form < 1 || form == 2 || form > formLast && form != formGNURefAlt && form != formGNUStrpAlt {
				c.fail(fmt.Errorf("values of a form %#x, which is not known", form))
			}
			if n == maxAttrs {
				c.fail(errNonsense)
			}
		}
	}
	t.sections.list[debugAbbrev].bytesRead += uint64(c.at)
	if c.bad() {
		return t.sections.fault(debugAbbrev, off, "abbreviations that make no sense, or tables of them that overlap: %v", c.fault())
	}
	return nil
}

// open makes t.info. Strings that are too long are empty.
func (t *Data) open(info, abbrevs []byte) error {
	var first error
	data := func(k int) []byte {
		b, err := t.sections.data(k)
		first = cmp.Or(first, err)
		return b
	}
	text := func(k int) []byte {
		b, err := t.cutTexts(k, data(k))
		first = cmp.Or(first, err)
		return b
	}
	str := text(debugStr)
	d, err := dwarf.New(abbrevs, nil, nil, info, nil, nil, data(debugRanges), str)
	if err != nil {
		return err
	}
	for k, b := range map[int][]byte{
		debugLineStr: text(debugLineStr), debugAddr: data(debugAddr), debugRnglists: data(debugRnglists),
		debugStrOffsets: clearHeader(data(debugStrOffsets)),
	} {
		if err := d.AddSection(".debug_"+sectionNames[k], b); err != nil {
			return err
		}
	}
	t.info, t.lookup = d, d.Reader()
	t.budget = entryCost{attrs: 8*uint64(len(info)) + 1<<16, text: 64*uint64(len(info)+len(str)) + 1<<20}
	return first
}

// clearHeader returns .debug_str_offsets without its first header (section 7.26). Before
// debug/dwarf knows where the offsets of a unit are, it reads those of the unit's first entry
// from the start of the section, and what the header of 64-bit DWARF holds is no offset.
func clearHeader(offsets []byte) []byte {
	n := 8
	if bytes.HasPrefix(offsets, []byte("\xff\xff\xff\xff")) {
		n = 16
	}
	offsets = bytes.Clone(offsets)
	clear(offsets[:min(len(offsets), n)])
	return offsets
}

// cutTexts returns strings with those of more than maxText bytes made empty.
func (t *Data) cutTexts(k int, data []byte) ([]byte, error) {
	var err error
	whole := data
	for at := 0; at < len(data); {
		n := bytes.IndexByte(data[at:], 0)
		if n < 0 {
			n = len(data) - at
		}
		if n > maxText {
			if err == nil {
				err = t.sections.fault(k, uint64(at), "a string has no end, or one of more than %d bytes", maxText)
				data = bytes.Clone(whole)
			}
			clear(data[at : at+n])
		}
		at += n + 1
	}
	return data, err
}

// entryCost is what decoding an entry takes: attributes, and bytes of strings.
type entryCost struct{ attrs, text uint64 }

func costOf(e *dwarf.Entry) entryCost {
	c := entryCost{attrs: 1 + uint64(len(e.Field))}
	for _, f := range e.Field {
		if s, ok := f.Val.(string); ok {
			c.text += uint64(len(s))
		}
	}
	return c
}

// charge takes what was decoded from what may still be. The first time that this is not
// enough, nothing is left.
func (t *Data) charge(c entryCost) error {
	if c.attrs > t.budget.attrs || c.text > t.budget.text {
		t.budget = entryCost{}
		return fmt.Errorf("%s: entries or strings that are used too often", t.sections.name(debugInfo))
	}
	t.budget.attrs -= c.attrs
	t.budget.text -= c.text
	return nil
}

// seek makes an entry the next one of a reader. debug/dwarf decodes the first entry of
// the unit then.
func (t *Data) seek(r *dwarf.Reader, entry dwarf.Offset) error {
	if err := t.charge(entryCost{attrs: 1}); err != nil {
		return err
	}
	r.Seek(entry)
	return nil
}

// next returns the next entry of a reader, nil behind the last.
func (t *Data) next(r *dwarf.Reader) (*dwarf.Entry, error) {
	e, err := r.Next()
	if err != nil {
		return nil, t.infoError(err)
	}
	if e == nil {
		return nil, nil
	}
	return e, t.charge(costOf(e))
}

// infoError shows an error of debug/dwarf as ours are.
func (t *Data) infoError(err error) error {
	if e, ok := err.(dwarf.DecodeError); ok {
		return fmt.Errorf(".debug_%s+%#x: %s", e.Name, e.Offset, e.Err)
	}
	return err
}

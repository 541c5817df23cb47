package lines

import "debug/dwarf"

const passedByValue = 0x05 // DW_CC_pass_by_value, which compilers of C++ tell

// cLanguages are DW_LANG_C89, C, C99, C11 and C17, whose structures are all passed by
// value.
var cLanguages = map[int64]bool{0x01: true, 0x02: true, 0x0c: true, 0x1d: true, 0x2c: true}

// structure returns the parameter that a structure or a union makes. One of a word, of
// nothing but integers and pointers in their places, is passed as an integer is: x86-64
// psABI, 3.2.3 (class INTEGER), AAPCS64, 6.8.2, and RISC-V psABI, chapter 2. Of a
// smaller one the rest of the word would hold anything, and big-endian machines
// disagree where it is.
func (p *prototypes) structure(u *unit, typ *dwarf.Entry) (Parameter, error) {
	size, _ := typ.Val(dwarf.AttrByteSize).(int64)
	convention, _ := typ.Val(dwarf.AttrCalling).(int64)
	byValue := convention == passedByValue || convention == 0 && cLanguages[u.language]
	if byValue && size == int64(u.addrSize) {
		ok, err := p.isInteger(u, typ)
		if err != nil || ok {
			return Parameter{Size: int(size)}, err
		}
	}
	return Parameter{Other: structures[typ.Tag]}, nil
}

// isInteger reports whether a structure has members, and all are integers and
// pointers in their places.
func (p *prototypes) isInteger(u *unit, typ *dwarf.Entry) (bool, error) {
	members, ok := 0, true
	err := p.t.entries(u, typ.Offset, func(e *dwarf.Entry, depth int) (err error) {
		switch {
		case depth != 1 || !ok:
		case e.Tag == dwarf.TagInheritance:
			ok = false
		case e.Tag == dwarf.TagMember:
			members++
			ok, err = p.inPlace(e)
		}
		return err
	})
	return ok && members > 0, err
}

// inPlace reports whether a member is an integer or a pointer at a multiple of its size.
func (p *prototypes) inPlace(member *dwarf.Entry) (bool, error) {
	var offset int64 // bytes; of a union there is none
	if f := member.AttrField(dwarf.AttrDataMemberLoc); f != nil {
		var ok bool
		if offset, ok = f.Val.(int64); !ok {
			return false, nil
		}
	}
	u, typ, size, err := p.underlying(member)
	if err != nil || typ == nil || structures[typ.Tag] != "" || member.AttrField(dwarf.AttrBitSize) != nil {
		return false, err
	}
	n := scalar(u, typ, size).Size
	return n != 0 && offset%int64(n) == 0, nil
}

package lines

import "fmt"

const (
	tagMember      = 0x0d
	tagInheritance = 0x1c

	atLanguage          = 0x13
	atCallingConvention = 0x36
	atMemberLocation    = 0x38
	atBitSize           = 0x0d

	passedByValue = 0x05 // DW_CC_pass_by_value, which compilers of C++ tell
)

// cLanguages are DW_LANG_C89, C, C99, C11 and C17, whose structures are all passed by
// value.
var cLanguages = map[uint64]bool{0x01: true, 0x02: true, 0x0c: true, 0x1d: true, 0x2c: true}

// structure returns the parameter that a structure or a union makes. One of a word, of
// nothing but integers and pointers in their places, is passed as an integer is: x86-64
// psABI, 3.2.3 (class INTEGER), AAPCS64, 6.8.2, and RISC-V psABI, chapter 2. Of a
// smaller one the rest of the word would hold anything, and big-endian machines
// disagree where it is.
func (p *prototypes) structure(u *unit, entry uint64, typ dataType) (Parameter, error) {
	byValue := typ.convention == passedByValue || typ.convention == 0 && cLanguages[u.language]
	if byValue && typ.size == int(u.addrSize) {
		ok, err := p.isInteger(u, entry)
		if err != nil || ok {
			return Parameter{Size: typ.size}, err
		}
	}
	return Parameter{Other: others[typ.tag]}, nil
}

// isInteger reports whether a structure has members, and all are integers and
// pointers in their places.
func (p *prototypes) isInteger(u *unit, entry uint64) (bool, error) {
	table, err := p.t.abbrevTable(u.abbrevs, u.params)
	if err != nil {
		return false, err
	}
	body, err := p.t.load(u)
	if err != nil {
		return false, err
	}
	c := p.t.cursor(body)
	c.At = int(entry)
	members := 0
	for depth := 0; ; {
		code := c.Uleb()
		if code == 0 {
			if depth--; depth <= 0 || c.Bad() {
				return members > 0 && !c.Bad(), nil
			}
			continue
		}
		a := table.get(code)
		if a == nil || c.Bad() || uint64(len(a.attrs)+1) > p.budget {
			return false, p.t.unitError(u, fmt.Sprintf("the members of the structure at %#x make no sense", entry))
		}
		p.budget -= uint64(len(a.attrs) + 1)
		var m member
		for _, at := range a.attrs {
			m.set(at.name, u.value(&c, at))
		}
		if depth == 1 && a.tag == tagInheritance {
			return false, nil
		}
		if depth == 1 && a.tag == tagMember {
			if ok, err := p.inPlace(u, m); err != nil || !ok {
				return false, err
			}
			members++
		}
		if a.children {
			depth++
		} else if depth == 0 {
			return false, nil
		}
	}
}

// member is a member of a structure.
type member struct {
	typ    value
	offset value // bytes; of a union there is none
	bits   bool  // it is a bit field
}

func (m *member) set(name uint32, v value) {
	switch name {
	case atType:
		m.typ = v
	case atMemberLocation:
		m.offset = v
	case atBitSize:
		m.bits = true
	}
}

// inPlace reports whether a member is an integer or a pointer at a multiple of its size.
func (p *prototypes) inPlace(u *unit, m member) (bool, error) {
	typ, err := p.scalar(u, m.typ)
	return err == nil && !m.bits && m.offset.b == nil && typ.Size != 0 && m.offset.u%uint64(typ.Size) == 0, err
}

package lines

import (
	"debug/dwarf"
	"fmt"
)

// Parameter is what is known of a parameter's type.
type Parameter struct {
	Size   int    // bytes; 0 when it is not passed as an integer or a pointer is
	Signed bool   // of an integer
	Other  string // what it is where Size is 0, with its article
}

// DW_ATE_* (section 7.8), which debug/dwarf does not export.
const (
	encodingBoolean      = 0x02
	encodingComplex      = 0x03
	encodingFloat        = 0x04
	encodingSigned       = 0x05
	encodingSignedChar   = 0x06
	encodingUnsigned     = 0x07
	encodingUnsignedChar = 0x08
	encodingUTF          = 0x10
)

// maxTypes bounds how many types lead from a parameter to one that has a size.
const maxTypes = 32

// parameter returns what is known of the type of a parameter.
func (p *prototypes) parameter(e *dwarf.Entry) (Parameter, error) {
	u, typ, size, err := p.underlying(e)
	if err != nil {
		return Parameter{}, err
	}
	if typ != nil && structures[typ.Tag] != "" {
		return p.structure(u, typ)
	}
	return scalar(u, typ, size), nil
}

// underlying follows the type of an entry through aliases, and through an enumeration to its
// underlying type. It returns the last type, its unit and the size in bytes, which an
// enumeration sets; the type is nil where none is known.
func (p *prototypes) underlying(e *dwarf.Entry) (u *unit, typ *dwarf.Entry, size int64, err error) {
	enumerated := false
	for range maxTypes {
		next, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if !ok {
			break
		}
		if u, e, err = p.t.at(next); err != nil || e == nil {
			return nil, nil, 0, err
		}
		if !enumerated {
			size, _ = e.Val(dwarf.AttrByteSize).(int64)
		}
		switch e.Tag {
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType, dwarf.TagAtomicType:
			continue
		case dwarf.TagEnumerationType:
			if enumerated = size != 0; e.AttrField(dwarf.AttrEncoding) == nil && e.AttrField(dwarf.AttrType) != nil {
				continue
			}
		}
		return u, e, size, nil
	}
	return nil, nil, 0, nil
}

// structures are the types that are passed as integers if their members allow it.
var structures = map[dwarf.Tag]string{
	dwarf.TagStructType: "a structure", dwarf.TagClassType: "a structure", dwarf.TagUnionType: "a union",
}

// scalar returns the parameter that a pointer, a base type or an enumeration makes; typ is
// nil for an unknown type.
func scalar(u *unit, typ *dwarf.Entry, size int64) Parameter {
	unknown := Parameter{Other: "of an unknown type"}
	if typ == nil {
		return unknown
	}
	encoding, _ := typ.Val(dwarf.AttrEncoding).(int64)
	switch typ.Tag {
	case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType, dwarf.TagUnspecifiedType: // decltype(nullptr)
		return Parameter{Size: int(u.addrSize)}
	case dwarf.TagArrayType:
		return Parameter{Other: "a vector"}
	case dwarf.TagEnumerationType, dwarf.TagBaseType:
	default:
		return unknown
	}
	switch encoding {
	case encodingSigned, encodingSignedChar, encodingBoolean, encodingUnsigned, encodingUnsignedChar, encodingUTF:
	case encodingFloat, encodingComplex:
		return Parameter{Other: "a floating-point number"}
	default:
		if typ.Tag == dwarf.TagBaseType {
			return unknown
		}
	}
	if size != 1 && size != 2 && size != 4 && size != 8 {
		return Parameter{Other: fmt.Sprintf("an integer of %d bytes", size)}
	}
	return Parameter{Size: int(size), Signed: encoding == encodingSigned || encoding == encodingSignedChar}
}

package lines

import "fmt"

// Parameter is what is known of a parameter's type.
type Parameter struct {
	Size   int    // bytes; 0 when it is not passed as an integer or a pointer is
	Signed bool   // of an integer
	Other  string // what it is where Size is 0, with its article
}

// The tags, attributes and encodings that tell the types of parameters (sections
// 7.5.3, 7.5.4 and 7.8).
const (
	tagArray           = 0x01
	tagClass           = 0x02
	tagEnumeration     = 0x04
	tagFormalParameter = 0x05
	tagPointer         = 0x0f
	tagReference       = 0x10
	tagStructure       = 0x13
	tagTypedef         = 0x16
	tagUnion           = 0x17
	tagUnspecified     = 0x18 // parameters: `...', or no prototype
	tagBaseType        = 0x24
	tagConst           = 0x26
	tagVolatile        = 0x35
	tagRestrict        = 0x37
	tagUnspecifiedType = 0x3b // decltype(nullptr)
	tagRvalueReference = 0x42
	tagAtomic          = 0x47

	atByteSize    = 0x0b
	atDeclaration = 0x3c
	atEncoding    = 0x3e
	atType        = 0x49

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

// parameter follows a type to one that has a size.
func (p *prototypes) parameter(u *unit, v value) (Parameter, error) {
	return p.follow(u, v, p.structure)
}

// scalar is parameter for what is in a structure: those in it are none.
func (p *prototypes) scalar(u *unit, v value) (Parameter, error) {
	return p.follow(u, v, func(*unit, uint64, dataType) (Parameter, error) { return Parameter{}, nil })
}

// follow follows a type to one that has a size, or to a structure.
func (p *prototypes) follow(u *unit, v value, structure func(u *unit, entry uint64, typ dataType) (Parameter, error)) (Parameter, error) {
	size := 0 // of an enumeration, of which its underlying type tells the sign
	for range maxTypes {
		var entry uint64
		if u, entry = p.t.target(u, v); u == nil {
			break
		}
		typ, err := p.readType(u, entry)
		if err != nil {
			return Parameter{}, err
		}
		if size != 0 {
			typ.size = size
		}
		switch typ.tag {
		case tagTypedef, tagConst, tagVolatile, tagRestrict, tagAtomic:
			v = typ.of
			continue
		case tagPointer, tagReference, tagRvalueReference, tagUnspecifiedType:
			return Parameter{Size: int(u.addrSize)}, nil
		case tagEnumeration:
			if size = typ.size; typ.encoding == 0 && typ.of.form != 0 {
				v = typ.of
				continue
			}
		case tagStructure, tagClass, tagUnion:
			return structure(u, entry, typ)
		case tagBaseType:
		default:
			return Parameter{Other: others[typ.tag]}.orUnknown(), nil
		}
		return integer(typ), nil
	}
	return Parameter{}.orUnknown(), nil
}

// others are types that are neither integers nor pointers.
var others = map[uint32]string{tagStructure: "a structure", tagClass: "a structure", tagUnion: "a union", tagArray: "a vector"}

// orUnknown returns the parameter with "unknown" for a type that is not known.
func (p Parameter) orUnknown() Parameter {
	if p.Other == "" {
		p.Other = "of an unknown type"
	}
	return p
}

// integer returns the parameter that a base type or an enumeration makes.
func integer(typ dataType) Parameter {
	p := Parameter{Size: typ.size}
	switch typ.encoding {
	case encodingSigned, encodingSignedChar:
		p.Signed = true
	case encodingBoolean, encodingUnsigned, encodingUnsignedChar, encodingUTF:
	case encodingFloat, encodingComplex:
		return Parameter{Other: "a floating-point number"}
	default:
		if typ.tag == tagBaseType {
			return Parameter{}.orUnknown()
		}
	}
	if p.Size != 1 && p.Size != 2 && p.Size != 4 && p.Size != 8 {
		return Parameter{Other: fmt.Sprintf("an integer of %d bytes", p.Size)}
	}
	return p
}

// dataType is the entry of a type.
type dataType struct {
	tag        uint32
	size       int // bytes, 0 when it does not tell
	encoding   uint64
	convention uint64 // DW_AT_calling_convention
	of         value  // the type that it is made of
}

func (p *prototypes) readType(u *unit, entry uint64) (dataType, error) {
	table, err := p.t.abbrevTable(u.abbrevs, u.params)
	if err != nil {
		return dataType{}, err
	}
	body, err := p.t.load(u)
	if err != nil {
		return dataType{}, err
	}
	c := p.t.cursor(body)
	c.At = int(entry)
	a := table.get(c.Uleb())
	if a == nil || uint64(len(a.attrs)) > p.budget {
		return dataType{}, p.t.unitError(u, fmt.Sprintf("no type at %#x", entry))
	}
	p.budget -= uint64(len(a.attrs))
	typ := dataType{tag: a.tag}
	for _, at := range a.attrs {
		switch v := u.value(&c, at); at.name {
		case atByteSize:
			typ.size = int(min(v.u, 1<<16))
		case atEncoding:
			typ.encoding = v.u
		case atCallingConvention:
			typ.convention = v.u
		case atType:
			typ.of = v
		}
	}
	if c.Bad() {
		return dataType{}, p.t.unitError(u, fmt.Sprintf("entry %#x is cut off", entry))
	}
	return typ, nil
}

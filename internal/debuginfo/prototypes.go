package debuginfo

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// maxParameters bounds how many parameters of a function are looked at.
const maxParameters = 64

// Prototypes returns the parameters of the functions that are declared, and not
// defined, under wanted names. Compilers describe what is called that way: gcc
// always, clang where it optimises. A function without a prototype is not
// there; one has several if units disagree about the number of its parameters. count is how many names
// are wanted, at most: a unit is read up to the last of them.
func (t *Lines) Prototypes(wanted func(name string) bool, count int) (map[string][][]Parameter, error) {
	declared, err := t.declarations(wanted, count)
	found := make(map[string][][]Parameter)
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		for _, types := range declared[name] {
			if slices.ContainsFunc(found[name], func(have []Parameter) bool { return len(have) == len(types) }) {
				continue
			}
			params := make([]Parameter, len(types))
			for i, e := range types {
				var paramErr error
				params[i], paramErr = t.parameter(e)
				err = cmp.Or(err, paramErr)
			}
			found[name] = append(found[name], params)
		}
	}
	return found, t.wrap(err)
}

// errLastEntry ends the reading of a unit.
var errLastEntry = errors.New("the last entry")

// declarations returns the entries of the parameters of each declaration that Prototypes reads.
func (t *Lines) declarations(wanted func(name string) bool, count int) (map[string][][]*dwarf.Entry, error) {
	found := make(map[string][][]*dwarf.Entry)
	for i := range t.units {
		names := map[string]bool{} // that the unit declares
		err := t.eachDeclaration(&t.units[i], wanted, func(*dwarf.Entry, int) {}, func(d *declaration) error {
			names[d.name] = true
			found[d.name] = append(found[d.name], d.types)
			if len(names) >= count {
				return errLastEntry
			}
			return nil
		})
		if err != nil && err != errLastEntry {
			return found, err
		}
	}
	return found, nil
}

// declaration is one of a function.
type declaration struct {
	*dwarf.Entry
	name  string
	depth int            // of its entry
	types []*dwarf.Entry // of its parameters
	open  bool           // whether it has no prototype, or one with `...'
}

// eachDeclaration reads a unit. It calls declared with each declaration of a function without variable arguments under a
// wanted name, and before that outside with each entry that is in none.
func (t *Lines) eachDeclaration(u *unit, wanted func(name string) bool, outside func(e *dwarf.Entry, depth int), declared func(*declaration) error) error {
	var current *declaration
	end := func() error {
		if d := current; d != nil && !d.open {
			current = nil
			return declared(d)
		}
		return nil
	}
	err := t.entries(u, u.entry, func(e *dwarf.Entry, depth int) error {
		if current != nil && depth > current.depth {
			switch {
			case depth > current.depth+1:
			case e.Tag == dwarf.TagFormalParameter && len(current.types) < maxParameters:
				current.types = append(current.types, e)
			case e.Tag == dwarf.TagUnspecifiedParameters: // `...', or no prototype
				current.open = true
			}
			return nil
		}
		if err := end(); err != nil {
			return err
		}
		current = nil
		if outside(e, depth); structures[e.Tag] != "" {
			return errSkipChildren // no function of C is declared in a structure
		}
		if e.Tag != dwarf.TagSubprogram || e.AttrField(dwarf.AttrDeclaration) == nil {
			return nil
		}
		linkage, name := namesOf(e)
		if name = cmp.Or(linkage, name); wanted(name) {
			current = &declaration{Entry: e, name: name, depth: depth}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return end()
}

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
func (t *Lines) parameter(e *dwarf.Entry) (Parameter, error) {
	u, typ, size, err := t.underlying(e)
	if err != nil {
		return Parameter{}, err
	}
	if typ != nil && structures[typ.Tag] != "" {
		// One of a word, of nothing but integers and pointers in their places, is passed as an integer is: x86-64
		// psABI, 3.2.3 (class INTEGER), AAPCS64, 6.8.2, and RISC-V psABI, chapter 2. Of a
		// smaller one the rest of the word would hold anything, and big-endian machines
		// disagree where it is.
		size, _ := typ.Val(dwarf.AttrByteSize).(int64)
		convention, _ := typ.Val(dwarf.AttrCalling).(int64)
		byValue := convention == passedByValue || convention == 0 && cLanguages[u.language]
		if byValue && size == int64(u.addrSize) {
			ok, err := t.isInteger(u, typ)
			if err != nil || ok {
				return Parameter{Size: int(size)}, err
			}
		}
		return Parameter{Other: structures[typ.Tag]}, nil
	}
	return scalar(u, typ, size), nil
}

// underlying follows the type of an entry through aliases, and through an enumeration to its
// underlying type. It returns the last type, its unit and the size in bytes, which an
// enumeration sets; the type is nil where none is known.
func (t *Lines) underlying(e *dwarf.Entry) (u *unit, typ *dwarf.Entry, size int64, err error) {
	enumerated := false
	for range maxTypes {
		next, ok := e.Val(dwarf.AttrType).(dwarf.Offset)
		if !ok {
			break
		}
		if u, e, err = t.at(next); err != nil || e == nil {
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

const passedByValue = 0x05 // DW_CC_pass_by_value, which compilers of C++ tell

// cLanguages are DW_LANG_C89, C, C99, C11 and C17, whose structures are all passed by
// value.
var cLanguages = map[int64]bool{0x01: true, 0x02: true, 0x0c: true, 0x1d: true, 0x2c: true}

// isInteger reports whether a structure has members, and all are integers and
// pointers in their places.
func (t *Lines) isInteger(u *unit, typ *dwarf.Entry) (bool, error) {
	members, ok := 0, true
	err := t.entries(u, typ.Offset, func(e *dwarf.Entry, depth int) (err error) {
		switch {
		case depth != 1 || !ok:
		case e.Tag == dwarf.TagInheritance:
			ok = false
		case e.Tag == dwarf.TagMember:
			members++
			ok, err = t.inPlace(e)
		}
		return err
	})
	return ok && members > 0, err
}

// inPlace reports whether a member is an integer or a pointer at a multiple of its size.
func (t *Lines) inPlace(member *dwarf.Entry) (bool, error) {
	var offset int64 // bytes; of a union there is none
	if f := member.AttrField(dwarf.AttrDataMemberLoc); f != nil {
		var ok bool
		if offset, ok = f.Val.(int64); !ok {
			return false, nil
		}
	}
	u, typ, size, err := t.underlying(member)
	if err != nil || typ == nil || structures[typ.Tag] != "" || member.AttrField(dwarf.AttrBitSize) != nil {
		return false, err
	}
	n := scalar(u, typ, size).Size
	return n != 0 && offset%int64(n) == 0, nil
}

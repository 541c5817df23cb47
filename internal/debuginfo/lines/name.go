package lines

import (
	"cmp"
	"debug/dwarf"
)

// maxOrigins bounds how many references lead from a function to its name: from
// an inlined copy to the function to the declaration in its class, in practice.
const maxOrigins = 8

const attrMIPSLinkageName dwarf.Attr = 0x2007 // before DWARF 4

// function returns the name of the function at an entry: what the linker calls it, else
// what the source does.
func (t *Table) function(entry dwarf.Offset) string {
	if name, ok := t.names[entry]; ok {
		return name
	}
	name, err := t.readName(entry)
	if err != nil {
		t.fail(err)
	}
	t.names[entry] = name
	return name
}

func (t *Table) readName(entry dwarf.Offset) (string, error) {
	plain := ""
	for range maxOrigins {
		_, e, err := t.at(entry)
		if err != nil || e == nil {
			return plain, err
		}
		linkage, name := namesOf(e)
		if linkage != "" {
			return linkage, nil
		}
		plain = cmp.Or(plain, name)
		origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			if origin, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset); !ok {
				break
			}
		}
		entry = origin
	}
	return plain, nil
}

// namesOf returns what the linker calls a function, and what the source does; "" for what
// its entry does not say.
func namesOf(e *dwarf.Entry) (linkage, name string) {
	linkage, _ = e.Val(dwarf.AttrLinkageName).(string)
	if linkage == "" {
		linkage, _ = e.Val(attrMIPSLinkageName).(string)
	}
	name, _ = e.Val(dwarf.AttrName).(string)
	return linkage, name
}

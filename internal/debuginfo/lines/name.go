package lines

import (
	"cmp"
	"fmt"
	"slices"
)

// maxOrigins bounds how many references lead from a function to its name: from
// an inlined copy to the function to the declaration in its class, in practice.
const maxOrigins = 8

// function returns the name of the function at an entry of a unit: what the
// linker calls it, else what the source does.
func (t *Table) function(u *unit, entry uint32) string {
	key := u.off + uint64(entry)
	if name, ok := t.names[key]; ok {
		return name
	}
	name, err := t.readName(u, uint64(entry))
	if err != nil {
		t.fail(err)
	}
	t.names[key] = name
	return name
}

func (t *Table) readName(u *unit, entry uint64) (string, error) {
	plain := ""
	for range maxOrigins {
		linkage, name, origin, err := t.readNames(u, entry)
		if err != nil || linkage != "" {
			return cmp.Or(linkage, plain), err
		}
		plain = cmp.Or(plain, name)
		if u, entry = t.target(u, origin); u == nil {
			break
		}
	}
	return plain, nil
}

// readNames reads the attributes of an entry that name it, or say which does.
func (t *Table) readNames(u *unit, entry uint64) (linkage, name string, origin value, err error) {
	table, err := t.abbrevTable(u.abbrevs, u.params)
	if err != nil {
		return "", "", value{}, err
	}
	body, err := t.load(u)
	if err != nil {
		return "", "", value{}, err
	}
	c := t.cursor(body)
	c.At = int(entry)
	a := table.get(c.Uleb())
	if a == nil {
		return "", "", value{}, t.unitError(u, fmt.Sprintf("no entry at %#x", entry))
	}
	for _, at := range a.attrs {
		v := u.value(&c, at)
		if c.Bad() {
			return "", "", value{}, t.unitError(u, fmt.Sprintf("entry %#x is cut off", entry))
		}
		switch at.name {
		case atLinkageName, atMIPSLinkage:
			linkage, err = t.text(u, v)
		case atName:
			name, err = t.text(u, v)
		case atAbstractOrigin, atSpecification:
			origin = v
		}
		if err != nil {
			return "", "", value{}, err
		}
	}
	return linkage, name, origin, nil
}

// target finds the entry that a reference leads to (section 7.5.5), nil when it
// leads out of the file or nowhere.
func (t *Table) target(u *unit, v value) (*unit, uint64) {
	off := v.u
	switch v.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
	case formRefAddr:
		i, ok := slices.BinarySearchFunc(t.units, off, func(u unit, off uint64) int { return cmp.Compare(u.off, off) })
		if !ok {
			i--
		}
		if i < 0 {
			return nil, 0
		}
		u = &t.units[i]
		off -= u.off
	default:
		return nil, 0
	}
	if off < u.first || off >= u.size {
		return nil, 0
	}
	return u, off
}

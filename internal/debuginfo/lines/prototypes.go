package lines

import (
	"fmt"
	"slices"

	"sdtconvert/internal/debuginfo/cursor"
)

// maxParameters bounds how many parameters of a function are looked at.
const maxParameters = 64

// Prototypes returns the parameters of the functions that are declared, and not
// defined, under wanted names. Compilers describe what is called that way: gcc
// always, clang where it optimises. A function without a prototype is not
// there; of those with several the first counts.
func (t *Table) Prototypes(wanted func(name string) bool) (map[string][]Parameter, error) {
	all, err := t.AllPrototypes(wanted)
	first := make(map[string][]Parameter, len(all))
	for name, found := range all {
		first[name] = found[0]
	}
	return first, err
}

// AllPrototypes returns the prototypes of Prototypes that differ in their number of
// parameters: units that disagree about a function have several.
func (t *Table) AllPrototypes(wanted func(name string) bool) (map[string][][]Parameter, error) {
	p := &prototypes{t: t, wanted: wanted, found: make(map[string][][]Parameter), budget: t.sections.budget(debugInfo, 1)}
	for i := range t.units {
		if err := p.unit(&t.units[i]); err != nil {
			return p.found, t.wrap(err)
		}
	}
	return p.found, nil
}

// prototypes looks for declarations.
type prototypes struct {
	t      *Table
	wanted func(string) bool
	found  map[string][][]Parameter
	budget uint64 // attributes of types that may still be decoded
}

// declaration is one that is being read.
type declaration struct {
	name  string
	depth int // of its entry
	types []value
	open  bool // whether it has no prototype, or one with `...'
}

// unit reads the entries of a unit from first to last.
func (p *prototypes) unit(u *unit) error {
	table, err := p.t.abbrevTable(u.abbrevs, u.params)
	if err != nil {
		return err
	}
	body, err := p.t.load(u)
	if err != nil {
		return err
	}
	c := p.t.cursor(body)
	c.At = int(u.first)
	var current *declaration
	for depth := 0; c.At < len(c.Data); {
		entry := c.At
		code := c.Uleb()
		if code == 0 && !c.Bad() {
			depth--
			if current != nil && depth <= current.depth {
				if err := p.keep(u, current); err != nil {
					return err
				}
				current = nil
			}
			continue
		}
		a := table.get(code)
		if a == nil || c.Bad() {
			return p.t.unitError(u, fmt.Sprintf("entry %#x has no abbreviation %d", entry, code))
		}
		d, err := p.entry(u, &c, a, current, depth)
		if err != nil {
			return err
		}
		if c.Bad() {
			return p.t.unitError(u, fmt.Sprintf("entry %#x is cut off, or of a form that is not known", entry))
		}
		if d != nil {
			if current = d; !a.children {
				if err := p.keep(u, d); err != nil {
					return err
				}
				current = nil
			}
		}
		if a.children {
			depth++
		}
	}
	return nil
}

// entry reads one entry. It returns the declaration that it starts, if it does.
func (p *prototypes) entry(u *unit, c *cursor.Cursor, a *abbrev, current *declaration, depth int) (*declaration, error) {
	child := current != nil && depth == current.depth+1
	switch {
	case a.tag == tagSubprogram && current == nil:
		return p.subprogram(u, c, a, depth)
	case a.tag == tagFormalParameter && child && len(current.types) < maxParameters:
		var typ value
		for _, at := range a.attrs {
			if at.name == atType {
				typ = u.value(c, at)
			} else {
				u.skipValue(c, at)
			}
		}
		current.types = append(current.types, typ)
		return nil, nil
	case a.tag == tagUnspecified && child:
		current.open = true
	}
	if a.size >= 0 {
		c.Skip(uint64(a.size))
		return nil, nil
	}
	for _, at := range a.attrs {
		u.skipValue(c, at)
	}
	return nil, nil
}

// subprogram reads the entry of a function, and returns it if it is a wanted
// declaration.
func (p *prototypes) subprogram(u *unit, c *cursor.Cursor, a *abbrev, depth int) (*declaration, error) {
	var name, linkage value
	declared := false
	for _, at := range a.attrs {
		switch at.name {
		case atName:
			name = u.value(c, at)
		case atLinkageName, atMIPSLinkage:
			linkage = u.value(c, at)
		case atDeclaration:
			u.skipValue(c, at)
			declared = true
		default:
			u.skipValue(c, at)
		}
	}
	if !declared || c.Bad() {
		return nil, nil
	}
	if linkage.form != 0 {
		name = linkage
	}
	text, err := p.t.text(u, name)
	if err != nil || !p.wanted(text) {
		return nil, err
	}
	return &declaration{name: text, depth: depth}, nil
}

// keep notes a declaration that has been read.
func (p *prototypes) keep(u *unit, d *declaration) error {
	sameNumber := func(known []Parameter) bool { return len(known) == len(d.types) }
	if d.open || slices.ContainsFunc(p.found[d.name], sameNumber) {
		return nil
	}
	params := make([]Parameter, len(d.types))
	for i, v := range d.types {
		var err error
		if params[i], err = p.parameter(u, v); err != nil {
			return err
		}
	}
	p.found[d.name] = append(p.found[d.name], params)
	return nil
}

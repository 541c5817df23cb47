package lines

import (
	"cmp"
	"debug/dwarf"
	"slices"
)

// maxParameters bounds how many parameters of a function are looked at.
const maxParameters = 64

// Prototypes returns the parameters of the functions that are declared, and not
// defined, under wanted names. Compilers describe what is called that way: gcc
// always, clang where it optimises. A function without a prototype is not
// there; one has several if units disagree about the number of its parameters.
func (t *Table) Prototypes(wanted func(name string) bool) (map[string][][]Parameter, error) {
	p := &prototypes{t: t, wanted: wanted, found: make(map[string][][]Parameter)}
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
}

// declaration is one that is being read.
type declaration struct {
	name  string
	depth int            // of its entry
	types []*dwarf.Entry // of its parameters
	open  bool           // whether it has no prototype, or one with `...'
}

// unit reads the entries of a unit from first to last.
func (p *prototypes) unit(u *unit) error {
	var current *declaration
	err := p.t.entries(u, u.entry, func(e *dwarf.Entry, depth int) error {
		if current != nil && depth > current.depth {
			if depth == current.depth+1 {
				current.add(e)
			}
			return nil
		}
		if err := p.keep(current); err != nil {
			return err
		}
		if structures[e.Tag] != "" {
			current = nil
			return errSkipChildren // no function of C is declared in a structure
		}
		current = p.declaration(e, depth)
		return nil
	})
	if err != nil {
		return err
	}
	return p.keep(current)
}

// declaration returns the declaration that an entry begins, nil if it is not a wanted one.
func (p *prototypes) declaration(e *dwarf.Entry, depth int) *declaration {
	if e.Tag != dwarf.TagSubprogram || e.AttrField(dwarf.AttrDeclaration) == nil {
		return nil
	}
	linkage, name := namesOf(e)
	if name = cmp.Or(linkage, name); !p.wanted(name) {
		return nil
	}
	return &declaration{name: name, depth: depth}
}

// add adds what an entry inside of a declaration says.
func (d *declaration) add(e *dwarf.Entry) {
	switch {
	case e.Tag == dwarf.TagFormalParameter && len(d.types) < maxParameters:
		d.types = append(d.types, e)
	case e.Tag == dwarf.TagUnspecifiedParameters: // `...', or no prototype
		d.open = true
	}
}

// keep notes a declaration that has been read.
func (p *prototypes) keep(d *declaration) error {
	if d == nil || d.open {
		return nil
	}
	sameNumber := func(known []Parameter) bool { return len(known) == len(d.types) }
	if slices.ContainsFunc(p.found[d.name], sameNumber) {
		return nil
	}
	params := make([]Parameter, len(d.types))
	for i, e := range d.types {
		var err error
		if params[i], err = p.parameter(e); err != nil {
			return err
		}
	}
	p.found[d.name] = append(p.found[d.name], params)
	return nil
}

package patch

import (
	"debug/elf"
	"errors"
	"fmt"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
)

// Convert disables all sites of a relocatable object, and records them. The result
// is what is to be written in place of the object (elfreloc.Output.Write), or nil
// when the object is right as it is. Where some site cannot be disabled nothing is:
// the error then joins one for each of them, which wrap an *arch.Refusal. All errors
// are of type *elfreloc.Error.
//
// It is Examine and then Plan.Save, for callers that do not need the plan. What stands
// behind o.End is not in the result.
func Convert(o *elfreloc.Object, opts Options) (*elfreloc.Output, error) {
	plan, err := Examine(o, opts)
	if err != nil {
		return nil, err
	}
	return plan.Save()
}

// Examine finds the sites of a relocatable object and plans their disabled forms.
// A site without one is not an error: see Plan.Refused. Errors are of type
// *elfreloc.Error; one of them is that the object was converted before, with other
// options, and has calls again (Plan.CheckEarlier).
func Examine(o *elfreloc.Object, opts Options) (*Plan, error) {
	if o.Type != elf.ET_REL {
		return nil, &elfreloc.Error{File: o.Name, Err: fmt.Errorf("an ELF file of type %v, and not a relocatable object", o.Type)}
	}
	opts = opts.ForObject(o)
	scan, err := Find(o, machines.Lookup(o.ABI()), opts.Names)
	if err != nil {
		return nil, err
	}
	plan, err := NewPlan(scan, opts)
	if err != nil {
		return nil, err
	}
	if err := plan.CheckEarlier(); err != nil {
		return nil, err
	}
	return plan, nil
}

// Save carries a plan out: the result is what is to be written in place of the
// object, or nil when the object is right as it is. It changes neither the object
// nor the plan, but for its Warnings. Where the plan has refusals, they are its error,
// joined.
func (p *Plan) Save() (*elfreloc.Output, error) {
	if err := errors.Join(p.Errors()...); err != nil {
		return nil, err
	}
	e, err := p.Scan.Object.Edit()
	if err != nil {
		return nil, err
	}
	if err := p.Apply(e); err != nil || !e.Changed() {
		return nil, err
	}
	return e.Save()
}

package patch

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/notes"
)

// Plan is how an object is to be changed. Its fields are not to be modified.
type Plan struct {
	Scan  *Scan
	Sites []Site // sorted by section and offset
	Loads []Load // of the addresses that sites call through registers, sorted so too
	// Refused is what keeps the plan from being applied: references from data, then those
	// from code. Of many, the last says how many more there are.
	Refused []Refusal
	Thunk   string // the symbol of the return thunk to use, "" for none
	// Warnings say what the output lacks, such as types in debug information that makes no sense, or leaves unconverted.
	// Apply and Output fill it.
	Warnings []error

	noted                []*notes.Note     // of sites that only notes describe; sorted by section and offset
	semaphores           *objectSemaphores // nil for none
	loadsThroughRegister bool              // a site goes to the helper that loads a semaphore through a register
	disabledByDTrace     bool              // dtrace -G has disabled sites, which are not among Sites

	describer *probeDescriber // once Plan.probeDescriber has made it
	objects   *ProbeObjects   // once probeObjects has found them
}

// planner makes a plan.
type planner struct {
	*Plan
	text     textReader
	operands operandTexts // of marked NOPs
	code     []byte       // of sites, before and after

	mayHaveDTraceMarks bool // see findDTraceMarks
	thunkRefused       *arch.Refusal
	thunks             map[int][]elfreloc.Relocation                                     // what thunkRelocs has found, by relocation section
	context            arch.Context                                                      // of all sites, without what is the site's own
	follow             func(section int, loads []arch.StubLoad) ([]arch.Followed, error) // for calls away from their relocations, once it is needed
	followed           map[relocation]*arch.Followed                                     // the loads of section followedIn
	followedIn         int

	omitted       int  // refusals that are not in Refused
	objectRefused bool // one of Refused is of the whole object
}

// NewPlan decides on the disabled form of each call that a Scan has found.
// What cannot be disabled is in Refused; then the plan must not be applied. If the machine is unknown, an object that
// refers to a stub is an error, even if only debug sections do: no relocation can be neutralised.
func NewPlan(s *Scan) (*Plan, error) {
	settings := &s.Settings
	p := &planner{Plan: &Plan{Scan: s}}
	for i := range s.Refused {
		p.refuse(s.Refused[i].Reference, s.Refused[i].Err)
	}
	defer p.countOmitted()
	if err := p.planSemaphores(); err != nil {
		return nil, err
	}
	needsMachine := s.Machine == nil && slices.ContainsFunc(s.Stubs, func(stub *Stub) bool { return !stub.Defined })
	if len(s.Calls)+len(s.Refused) == 0 && !needsMachine {
		return p.Plan, nil
	}
	if s.Machine == nil {
		return nil, s.Unsupported()
	}
	p.Thunk, p.thunkRefused = s.Machine.Traits().Thunk(settings.ReturnThunk)
	if _, ok := s.Machine.(arch.DOFMachine); settings.DTraceForms && !ok {
		return nil, &elfreloc.Error{File: s.Object.Name, Err: fmt.Errorf("holds probes, and DTrace has no form of them for %v", s.Object.Machine)}
	}
	if settings.ReturnThunk == (arch.ThunkChoice{}) && s.ReturnsThroughThunk {
		p.Thunk = s.Machine.Traits().ReturnThunk.Symbol
	}
	if err := p.addCalls(); err != nil {
		return nil, err
	}
	return p.Plan, nil
}

// addCalls plans the sites of all references of code.
func (p *planner) addCalls() error {
	s := p.Scan
	p.Sites, p.code = make([]Site, 0, len(s.Calls)), make([]byte, 0, 10*len(s.Calls))
	p.text = textReader{object: s.Object, maps: s.mappings()}
	p.text.checker, _ = s.Machine.(arch.CallChecker)
	var err error
	if p.text.attributes, err = s.attributes(); err != nil {
		return err
	}
	if p.operands, err = s.readOperands(); err != nil {
		return err
	}
	if err := p.findDTraceMarks(); err != nil {
		return err
	}
	p.context = arch.Context{ReturnThunk: p.Thunk != "", Armable: s.Settings.armable()}
	for i := range s.Calls {
		ref := &s.Calls[i]
		disabled, err := p.isDisabledByDTrace(ref)
		if err != nil {
			return err
		}
		if disabled {
			p.disabledByDTrace = true
			continue
		}
		if err := p.addCall(ref); err != nil {
			return err
		}
	}
	sortStable(p.Sites, func(a, b *Site) int { return a.Addr().Compare(b.Addr()) })
	p.refuseOverlaps()
	sortStable(p.Refused[min(len(p.Scan.Refused), len(p.Refused)):], func(a, b *Refusal) int { return a.addr().Compare(b.addr()) })
	return nil
}

// countOmitted makes the last refusal say how many more there are.
func (p *planner) countOmitted() {
	if p.omitted > 0 {
		last := &p.Refused[len(p.Refused)-1]
		last.Err = fmt.Errorf("%w; %d more references cannot be converted either", last.Err, p.omitted)
	}
}

// sortStable sorts stably what is mostly in order already: compilers write relocations so. The entries are large, and are
// compared where they are.
func sortStable[T any](entries []T, compare func(a, b *T) int) {
	for i := 1; i < len(entries); i++ {
		if compare(&entries[i-1], &entries[i]) > 0 {
			slices.SortStableFunc(entries, func(a, b T) int { return compare(&a, &b) })
			return
		}
	}
}

// Errors returns what stands in the way of the plan, an *elfreloc.Error for each refusal,
// in the order of Refused. They wrap what Refusal.Err is.
func (p *Plan) Errors() []error {
	var errs []error
	for i := range p.Refused {
		r, where := &p.Refused[i], ""
		if functions, err := p.Scan.Functions(); err == nil {
			if place := functions.Place(r.Relocs.Target, r.Reloc.Offset); place != "" {
				where = "in " + place + ": "
			}
		}
		errs = append(errs, p.Scan.Object.OffsetError(r.Relocs.Target, r.Reloc.Offset, fmt.Errorf("%s%s against %q: %w",
			where, p.RelocName(r.Reloc.Type), r.Stub.Name, r.Err)))
	}
	return errs
}

// RelocName names a relocation type of the object.
func (p *Plan) RelocName(typ uint32) string {
	if p.Scan.Machine == nil {
		return fmt.Sprintf("relocation type %d", typ)
	}
	return p.Scan.Machine.RelocName(typ)
}

// Convert disables all sites of a relocatable object, and records them. The result
// is what is to be written in place of the object (elfreloc.Output.Write), or nil
// when the object is right as it is. Where some site cannot be disabled nothing is:
// the error then joins one for each of them, which wrap an *arch.Refusal. All errors
// are of type *elfreloc.Error.
//
// It is Examine and then Plan.Output, for callers that need neither the plan nor its Warnings.
func Convert(o *elfreloc.Object, opts Options) (*elfreloc.Output, error) {
	plan, err := Examine(o, opts)
	if err != nil {
		return nil, err
	}
	return plan.Output()
}

// Examine finds the sites of a relocatable object and plans their disabled forms.
// A site without one is not an error: see Plan.Refused. Errors are of type
// *elfreloc.Error; one of them is that the object has records of a conversion with other
// options (Scan.CheckEarlier); another, that it holds code with probes which only a link generates.
func Examine(o *elfreloc.Object, opts Options) (*Plan, error) {
	if o.Type != elf.ET_REL {
		return nil, &elfreloc.Error{File: o.Name, Err: fmt.Errorf("an ELF file of type %v, and not a relocatable object", o.Type)}
	}
	if err := lto.Check(o, opts.StubTexts()); err != nil {
		return nil, err
	}
	return NewScan(o, machines.Lookup(o.ABI()), opts).Examine()
}

// Examine is the function Examine for a relocatable object without intermediate code.
func (s *Scan) Examine() (*Plan, error) {
	if err := s.find(); err != nil {
		return nil, err
	}
	plan, err := NewPlan(s)
	if err != nil {
		return nil, err
	}
	if err := plan.checkEarlier(); err != nil {
		return nil, err
	}
	return plan, plan.planNoted()
}

// Output carries a plan out: the result is what is to be written in place of the
// object, or nil when the object is right as it is. It changes neither the object
// nor the plan, but for its Warnings. Where the plan has refusals, they are its error,
// joined.
func (p *Plan) Output() (*elfreloc.Output, error) {
	if err := errors.Join(p.Errors()...); err != nil {
		return nil, err
	}
	if p.changesNothing() {
		return nil, nil
	}
	e, err := p.Scan.Object.Edit()
	if err != nil {
		return nil, err
	}
	if err := p.Apply(e); err != nil || !e.Changed() {
		return nil, err
	}
	out, err := e.Output()
	if err == nil {
		err = p.finishOutput(out)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// finishOutput pads an output as the object is padded, and warns of what it lacks.
func (p *Plan) finishOutput(out *elfreloc.Output) error {
	o := p.Scan.Object
	lost, err := copyTrailingBytes(o, out)
	if err != nil {
		return err
	}
	if lost != nil {
		p.Warnings = append(p.Warnings, lost)
	}
	if p.Scan.Settings.LinkConverts {
		return nil
	}
	fat, err := lto.WarnFat(o, p.Scan.stubTexts)
	if fat != nil {
		p.Warnings = append(p.Warnings, fat)
	}
	return err
}

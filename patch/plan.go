package patch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
	"sdtconvert/patch/internal/probeobjects"
	"sdtconvert/patch/internal/tracers"
)

// Options say how sites are disabled and recorded: see DefaultOptions. They are not
// modified, so that several goroutines may use the same.
type Options struct {
	Names       Names
	Layout      linkerset.Layout // of records
	ProbePrefix string           // of probe objects' names; the probe id follows; "" for sdt_
	NoRecords   bool             // only disable
	// DropRelocations deletes the relocations of disabled sites, instead of
	// making them R_*_NONE. Then no linker keeps records and text together.
	DropRelocations bool
	// ReturnThunk is the symbol to jump to instead of returning, or arch.OwnThunk for
	// the machine's own. When it is "", that is used in objects that refer to it.
	ReturnThunk string
	// Stapsdt adds the notes that tracers of user space find probes by, and gives
	// the sites forms that they arm well.
	Stapsdt bool
	// DTrace adds those that DTrace for Linux finds sites by, and gives the sites the
	// same forms.
	DTrace bool
	// DOF, where it is not nil, has sites disabled for DTrace's object format, and nothing
	// recorded: see Plan.DOFSites.
	DOF *DOF
	// Semaphores says which probes get semaphores, if there are notes. Is-enabled tests
	// load them then. Those that guards read get their names if Names.Guards says so.
	Semaphores Semaphores
	// Prototypes tell the arguments of stubs for these notes, where nothing in
	// an object does.
	Prototypes Prototypes
	// ProbeSource knows what other files of the link say about probes that an
	// object does not define; nil for nothing.
	ProbeSource ProbeSource
}

// defaultProbePrefix begins the names of FreeBSD's probe objects.
const defaultProbePrefix = "sdt_"

// withDefaults returns opts with a default in the place of what is required and missing.
func (opts Options) withDefaults() Options {
	opts.Names = opts.Names.orDefault()
	opts.ProbePrefix = cmp.Or(opts.ProbePrefix, defaultProbePrefix)
	return opts
}

// HasNotes reports whether there are notes of any kind.
func (opts Options) HasNotes() bool { return opts.Stapsdt || opts.DTrace }

// armable reports whether the sites are armed with breakpoints: by uprobes, which find
// them through notes, or by FreeBSD's kernel. Its handler of breakpoints steps over one
// byte, and its function boundary tracing takes each return for its own.
func (opts Options) armable() bool {
	return opts.HasNotes() || opts.Layout.Format == linkerset.FreeBSD
}

// Site is a reference with its disabled form.
type Site struct {
	Reference
	Change arch.Change
	// Operands say where the arguments of a marked nop are, as notes have them; "" for
	// all other forms, whose arguments are where a call has them.
	Operands string
	// Shared reports that the relocation is that of another site, too: a stub's address was
	// loaded once for both.
	Shared bool
}

// Plan is how an object is to be changed. Its fields are not to be modified.
type Plan struct {
	Scan    *Scan
	Options Options
	Sites   []Site // sorted by section and offset
	Loads   []Load // of the addresses that sites call through registers, sorted so too
	// Refused is what keeps the plan from being applied: references from data, then those
	// from code. Of many, the last says how many more there are.
	Refused []Refusal
	Thunk   string // the return thunk to use, "" for none
	// Warnings are what Apply has met that keeps it from knowing all it might
	// record.
	Warnings []error

	semaphores *tracers.Semaphores           // nil for none
	thunks     map[int][]arch.Reloc          // what returns has found, by relocation section
	code       []byte                        // what keep has kept
	flow       arch.Flow                     // for calls away from their relocations, once it is needed
	followed   map[relocation]*arch.Followed // the loads of section followedIn
	followedIn int
	indirect   bool                  // a site goes to the helper that loads a semaphore through a register
	known      *tracers.Probes       // once probes has made it
	objects    *probeobjects.Objects // once probeObjects has found them

	more          int  // refusals that are not in Refused
	objectRefused bool // one of Refused is of the whole object
	edited        bool // dtrace -G has disabled sites, which are not among Sites
}

// NewPlan decides on the disabled form of each call that a Scan has found.
// What cannot be disabled is in Refused; then the plan must not be applied. An object of
// a machine that is not known is an error where it calls stubs, or names them in what is
// not loaded: which relocation names nothing is not known either.
func NewPlan(s *Scan, opts Options) (*Plan, error) {
	opts = opts.withDefaults()
	p := &Plan{Scan: s, Options: opts, Thunk: opts.ReturnThunk}
	for i := range s.Refused {
		p.refuse(&s.Refused[i].Reference, s.Refused[i].Err)
	}
	defer p.sumUp()
	if err := p.planSemaphores(); err != nil {
		return nil, err
	}
	named := s.Machine == nil && slices.ContainsFunc(s.Stubs, func(stub *Stub) bool { return !stub.Defined })
	if len(s.Calls)+len(s.Refused) == 0 && !named {
		return p, nil
	}
	if s.Machine == nil {
		return nil, s.Unsupported()
	}
	p.Thunk = s.Machine.Traits().Thunk(p.Thunk)
	if opts.DOF != nil {
		if err := p.checkDOF(); err != nil {
			return nil, err
		}
	}
	if p.Thunk == "" && s.ReturnsThroughThunk {
		p.Thunk = s.Machine.Traits().ReturnThunk.Symbol
	}
	p.Sites = make([]Site, 0, len(s.Calls))
	p.code = make([]byte, 0, len(s.Calls)*usualSite)
	maps, err := s.mappings()
	if err != nil {
		return nil, err
	}
	text := &textReader{object: s.Object, window: s.Machine.Traits().Window, maps: maps}
	if text.text.Attributes, err = s.attributes(); err != nil {
		return nil, err
	}
	found, err := s.readOperands()
	if err != nil {
		return nil, err
	}
	edited, err := p.editedByDTrace()
	if err != nil {
		return nil, err
	}
	p.edited = len(edited) > 0
	for i := range s.Calls {
		if ref := &s.Calls[i]; !edited[ref.place()] {
			if err := p.addCall(ref, text, found); err != nil {
				return nil, err
			}
		}
	}
	p.sort()
	return p, nil
}

// UnsupportedPlan makes a plan that shows what a Scan has found in an object of a
// machine that is not known: where the stubs are referred to, and no more.
func UnsupportedPlan(s *Scan) *Plan {
	p := &Plan{Scan: s}
	for _, ref := range s.Calls {
		p.Sites = append(p.Sites, Site{Reference: ref, Change: arch.Change{Site: arch.Site{Offset: ref.Reloc.Offset}}})
	}
	return p
}

// addSite plans one site of a reference: what Decode has found, or an error.
func (p *Plan) addSite(s Site, site arch.Site, err error, t arch.Text, found tracers.Operands) error {
	if err != nil && !isRefusal(err) {
		return err
	}
	ref := &s.Reference
	if err == nil && t.Encoding(site.Offset) == arch.Data {
		err = arch.RefuseAddress(fixAddress, "a reference from data within code")
	}
	if err == nil {
		err = refusal(p.Scan.Machine.Traits().CheckThunk(p.Thunk))
	}
	if err == nil {
		site.Code = p.keep(site.Code) // and let go of the window
		s.Change, err = p.disable(ref, site, t)
		if err != nil && !isRefusal(err) {
			return err
		}
	}
	if err == nil && site.Form == arch.Nop {
		s.Operands, err = found.Lookup(ref.place())
	}
	if err != nil {
		p.refuse(ref, err)
		return nil
	}
	p.Sites = append(p.Sites, s)
	return nil
}

// disable gives the disabled form of a site, with the text around it.
func (p *Plan) disable(ref *Reference, site arch.Site, t arch.Text) (change arch.Change, err error) {
	if p.Options.DOF != nil {
		return p.disableDOF(ref, site)
	}
	env := arch.Env{ReturnThunk: p.Thunk != "", Armable: p.Options.armable(), Semaphore: p.semaphores.Room(ref.Stub.ID, ref.Stub.Kind), Reloc: ref.Reloc.Type, Text: t}
	if env.ReturnThunk && slices.Contains(p.Scan.Machine.Traits().ReturnThunk.Near, site.Form) {
		if env.Returns, err = p.returns(ref.Relocs); err != nil {
			return change, err
		}
	}
	return p.Scan.Machine.Disable(site, ref.Stub.Kind, env)
}

// refuse notes what is refused: once, where it is the whole object that does not fit.
func (p *Plan) refuse(ref *Reference, err error) {
	r, ok := errors.AsType[*arch.Refusal](err)
	ofObject := ok && r.Object
	if ofObject && p.objectRefused {
		return
	}
	p.objectRefused = p.objectRefused || ofObject
	if len(p.Refused) == maxRefused {
		p.more++
		return
	}
	p.Refused = append(p.Refused, Refusal{*ref, err})
}

// sumUp makes the last refusal say how many more there are.
func (p *Plan) sumUp() {
	if p.more > 0 {
		last := &p.Refused[len(p.Refused)-1]
		last.Err = fmt.Errorf("%w; %d more references cannot be converted either", last.Err, p.more)
	}
}

// refusal makes an error of a refusal, or nil of none.
func refusal(r *arch.Refusal) error {
	if r == nil {
		return nil
	}
	return r
}

// usualSite is a length in bytes that few sites exceed.
const usualSite = 8

// keep copies bytes to where those of all sites are.
func (p *Plan) keep(code []byte) []byte {
	at := len(p.code)
	p.code = append(p.code, code...)
	return p.code[at:len(p.code):len(p.code)]
}

// returns finds the relocations against the return thunk in a section.
func (p *Plan) returns(rs *elfreloc.RelocSection) ([]arch.Reloc, error) {
	if found, ok := p.thunks[rs.Index]; ok {
		return found, nil
	}
	syms, err := p.Scan.Object.Symbols()
	if err != nil {
		return nil, err
	}
	wanted := make([]bool, syms.Len())
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		wanted[i] = syms.Name(i) == p.Thunk
	}
	var found []arch.Reloc
	err = p.Scan.Object.EachRelocationAgainst(*rs, wanted, func(_ int, r elfreloc.Relocation) error {
		if wanted[r.Sym] {
			found = append(found, machineReloc(r))
		}
		return nil
	})
	slices.SortFunc(found, func(a, b arch.Reloc) int { return cmp.Compare(a.Offset, b.Offset) })
	if p.thunks == nil {
		p.thunks = make(map[int][]arch.Reloc)
	}
	p.thunks[rs.Index] = found
	return found, err
}

// sort brings the sites in order, and refuses those that share bytes with the one before.
func (p *Plan) sort() {
	slices.SortStableFunc(p.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(a.Relocs.Target, b.Relocs.Target), cmp.Compare(a.Change.Site.Offset, b.Change.Site.Offset))
	})
	sites := p.Sites[:0]
	for _, s := range p.Sites {
		if n := len(sites); n > 0 {
			last := &sites[n-1]
			old := &last.Change.Site
			if last.Relocs.Target == s.Relocs.Target && s.Change.Site.Offset < old.Offset+uint64(len(old.Code)) {
				p.refuse(&s.Reference, fmt.Errorf("its bytes overlap those of the site at %#x against %q", old.Offset, last.Stub.Name))
				continue
			}
		}
		sites = append(sites, s)
	}
	p.Sites = sites
	slices.SortStableFunc(p.Refused[min(len(p.Scan.Refused), len(p.Refused)):], func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Relocs.Target, b.Relocs.Target), cmp.Compare(a.Reloc.Offset, b.Reloc.Offset))
	})
}

func machineReloc(r elfreloc.Relocation) arch.Reloc {
	return arch.Reloc{Offset: r.Offset, Type: r.Type, Addend: r.Addend, Implicit: r.Implicit}
}

// Errors returns what stands in the way of the plan, an *elfreloc.Error for each refusal,
// in the order of Refused. They wrap what Refusal.Err is.
func (p *Plan) Errors() []error {
	var errs []error
	for i := range p.Refused {
		errs = append(errs, p.explain(&p.Refused[i]))
	}
	return errs
}

func (p *Plan) explain(r *Refusal) error {
	where := ""
	if functions, err := p.Scan.Functions(); err == nil {
		if place := functions.Place(r.Relocs.Target, r.Reloc.Offset); place != "" {
			where = "in " + place + ": "
		}
	}
	return p.Scan.Object.OffsetError(r.Relocs.Target, r.Reloc.Offset, fmt.Errorf("%s%s against %q: %w",
		where, p.RelocName(r.Reloc.Type), r.Stub.Name, r.Err))
}

// RelocName names a relocation type of the object.
func (p *Plan) RelocName(typ uint32) string {
	if p.Scan.Machine == nil {
		return fmt.Sprintf("relocation type %d", typ)
	}
	return p.Scan.Machine.RelocName(typ)
}

// textReader reads code around sites, through one buffer for sites that are
// close to each other.
type textReader struct {
	object  *elfreloc.Object
	window  uint64                  // of the machine
	maps    map[int]*[]arch.Mapping // by section, of those that hold calls
	section int
	text    arch.Text
	buffer  []byte
	relocs  []arch.Reloc // of the last site, to be reused
}

const textBuffer = 64 << 10

// around returns a text that has the machine's window on both sides of off, where the
// section has it.
func (t *textReader) around(section int, off uint64) (arch.Text, error) {
	size := t.object.Sections[section].Size
	from := off - min(off, t.window)
	to := min(size, off+min(t.window, size)) // off may be any number
	if from >= to {
		return arch.Text{}, nil
	}
	if t.section == section && t.text.Start <= from && to <= t.text.Start+uint64(len(t.text.Code)) {
		return t.text, nil
	}
	n := min(size-from, textBuffer)
	if uint64(cap(t.buffer)) < n {
		t.buffer = make([]byte, n)
	}
	code := t.buffer[:n]
	if _, err := t.object.Reader(section).ReadAt(code, int64(from)); err != nil {
		return arch.Text{}, err
	}
	t.section, t.text = section, arch.Text{Code: code, Start: from, Attributes: t.text.Attributes}
	if m := t.maps[section]; m != nil {
		t.text.Map = *m
	}
	return t.text, nil
}

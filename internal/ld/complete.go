package ld

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// addedName is what reports call the object that is added to a link.
const addedName = "sdtconvert-stubs.o"

// addition is an object that is added to the line.
type addition struct {
	file string
	at   int // the argument before which it goes
}

// complete sees to what concerns a final link as a whole: that all records are of one
// kind, and that each probe has a definition. The addition is nil where nothing is to be
// added. kinds are the kinds of sites that the link has records of.
func (l *link) complete(ln *line.Line, inputs scanned, done converted, code generated) (added *addition, kinds []arch.Kind, err error) {
	all := slices.Concat(inputs.inputs, code.inputs)
	parts := l.readParts(all, done.parts, code.parts)
	if err := checkAgreement(parts, done.any || code.any); err != nil {
		return nil, nil, err
	}
	if l.Convert.Patch.NoRecords || len(parts) == 0 {
		return nil, nil, nil
	}
	for kind := range arch.Kinds {
		if slices.ContainsFunc(parts, func(p *part) bool { return p.records[kind] }) {
			kinds = append(kinds, kind)
		}
	}
	if l.NoStubs {
		return nil, kinds, nil
	}
	added, err = l.addStubs(ln, inputs, code, parts)
	return added, kinds, err
}

// addStubs writes an object of the stubs and probes that are missing from a link, or
// returns nil if none is.
func (l *link) addStubs(ln *line.Line, inputs scanned, code generated, parts []*part) (*addition, error) {
	need := stubs.New(stubOptions(l.Convert.Patch))
	for _, p := range parts {
		need.Merge(p.need)
	}
	if need.Missing() {
		if err := addLibraries(need, slices.Concat(inputs.inputs, code.inputs)); err != nil {
			return nil, err
		}
	}
	if !need.Missing() {
		return nil, nil
	}
	if err := l.reportUnknown(need.Unknown()); err != nil {
		return nil, err
	}
	data, err := need.Object()
	if err != nil {
		return nil, err
	}
	file, err := l.session.write(addedName, data)
	if err != nil {
		return nil, err
	}
	return &addition{file, place(ln.Args, inputs.byArg, code.byArg)}, nil
}

// reportUnknown warns of probes that may be misspelt, or refuses the link for them.
func (l *link) reportUnknown(probes []stubs.Unknown) error {
	var errs []error
	for _, p := range probes {
		err := fmt.Errorf("%s: nothing defines %s, and the link defines other probes of %s; correct the name or define the probe", p.File, p.Object, p.Provider)
		if !l.NoUndefinedProbes {
			message.Warning(l.Stderr, err)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// part is what some neighbouring files are to a link.
type part struct {
	need    *stubs.Need
	earlier bool    // they hold records of an earlier conversion with the flags of this one
	other   []error // or with others
	err     error
	records [arch.Kinds]bool // the kinds of sites that the link has records of
}

func stubOptions(o patch.Options) stubs.Options {
	return stubs.Options{
		Names: o.Names, ProbePrefix: o.ProbePrefix, Thunk: o.ReturnThunk, Layouts: o.Layout.Candidates(),
		Converted: true, Hidden: o.Layout.Format == linkerset.Relative,
	}
}

// readParts reads the inputs that have to do with probes, but for those that were
// noted when they were scanned or converted.
func (l *link) readParts(inputs []*linkInput, noted ...map[string]*part) []*part {
	var users []*linkInput
	for _, in := range inputs {
		if in.names && (in.elf == elf.ET_REL || in.isArchive()) {
			users = append(users, in)
		}
	}
	parts := make([]*part, len(users))
	parallel.Each(len(users), l.Convert.Jobs, func(i int) {
		if parts[i] = users[i].part; parts[i] != nil {
			return
		}
		for _, known := range noted {
			if parts[i] = known[users[i].file]; parts[i] != nil {
				return
			}
		}
		parts[i] = readPart(l.Convert.Patch, users[i].file)
	})
	return slices.Compact(parts) // neighbours share one
}

// newPart returns the part of no files yet.
func newPart(o patch.Options) *part { return &part{need: stubs.New(stubOptions(o))} }

// readPart reads an object, or the members of an archive.
func readPart(o patch.Options, file string) *part {
	p := newPart(o)
	f, err := input.Open(file)
	if err != nil {
		p.err = err
		return p
	}
	defer f.Close()
	if p.err = f.Load(); p.err != nil {
		return p
	}
	p.err = f.Each(input.Options{FollowThin: true}, func(src *input.Source) error {
		if typ, err := src.Type(); err != nil || typ != filetype.ELF {
			return err
		}
		obj, err := src.Image()
		if err != nil || obj.Type != elf.ET_REL {
			return nil // or it would be refused by now, if it held probes
		}
		return p.add(o, obj, nil)
	})
	return p
}

// add adds an object. scan is what was found in it, or nil; then the object need not have
// to do with probes.
func (p *part) add(o patch.Options, obj *input.Object, scan *patch.Scan) error {
	if scan == nil {
		if found, err := obj.NamesContain(anyNames(o)); err != nil || !found {
			return err
		}
	}
	earlier, err := o.CheckEarlier(obj.Object, obj.Machine)
	switch {
	case err == nil:
		p.earlier = p.earlier || earlier
	case obj.Source.Member != nil:
		p.other = []error{err} // one for all members
	default:
		p.other = append(p.other, err)
	}
	p.addRecords(o, obj, scan)
	return p.need.AddScan(obj.Object, obj.Machine, scan)
}

// addRecords notes of which kinds an object has records: from its conversion, of which
// scan is nil if there was none, or from an earlier one.
func (p *part) addRecords(o patch.Options, obj *input.Object, scan *patch.Scan) {
	if scan != nil {
		for _, ref := range scan.Calls {
			p.records[ref.Stub.Kind] = true
		}
	}
	for i := range obj.Sections {
		if kind, ok := o.Layout.IsRecordSection(&obj.Sections[i]); ok {
			p.records[kind] = true
		}
	}
}

// checkAgreement refuses what cannot be read, and records that do not go together. Those
// that are all alike do, whatever the flags are, if nothing is converted now.
func checkAgreement(parts []*part, converted bool) error {
	var errs, others []error
	mixed := converted
	for _, p := range parts {
		if p.err != nil {
			errs = append(errs, p.err)
		}
		mixed = mixed || p.earlier
		for _, other := range p.other {
			others = append(others, other)
			mixed = mixed || cause(other) != cause(others[0])
		}
	}
	if mixed {
		errs = append(errs, others...)
	}
	return errors.Join(errs...)
}

func cause(err error) string {
	if of := (*elfreloc.Error)(nil); errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}

// addLibraries takes in what shared libraries define.
func addLibraries(need *stubs.Need, inputs []*linkInput) error {
	for _, in := range inputs {
		if in.elf != elf.ET_DYN {
			continue
		}
		if err := addLibrary(need, in.file); err != nil {
			return err
		}
	}
	return nil
}

func addLibrary(need *stubs.Need, file string) error {
	f, err := input.Open(file)
	if err != nil {
		return nil // the linker knows why
	}
	defer f.Close()
	o, err := f.Source().Image()
	if err != nil {
		return err
	}
	return need.Add(o.Object, nil)
}

// place is behind the last object that has to do with probes: there objects are read,
// and as a part of the link. Where only archives have, it is before the first of them.
func place(args []line.Arg, byArg map[int]*linkInput, code map[int][]string) int {
	first := len(args)
	for i := len(args) - 1; i >= 0; i-- {
		in := byArg[i]
		if len(code[i]) > 0 {
			return i + 1
		}
		if in == nil || !in.names {
			continue
		}
		if in.elf == elf.ET_REL && !args[i].Lazy {
			return i + 1
		}
		first = i
	}
	if first < len(args) && args[first].Lazy {
		before := slices.IndexFunc(args, func(a line.Arg) bool { return a.Lazy })
		return before - 1 // --start-lib itself
	}
	return first
}

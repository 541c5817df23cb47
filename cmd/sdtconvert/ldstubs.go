package main

import (
	"debug/elf"
	"errors"
	"slices"

	"sdtconvert/arch/machines"
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

// completeLink sees to what concerns a final link as a whole: that all records are of
// one kind, and that each probe has a definition.
func (l *link) completeLink() error {
	var users []*linkInput
	for _, in := range l.inputs {
		if in.names && (in.elf == elf.ET_REL || in.isArchive()) {
			users = append(users, in)
		}
	}
	if len(users) == 0 {
		return nil
	}
	parts := make([]*linkPart, len(users))
	parallel.Each(len(users), l.jobs, func(i int) { parts[i] = l.readPart(users[i]) })
	var errs []error
	for i := range parts {
		if parts[i].err != nil {
			errs = append(errs, parts[i].err)
		}
	}
	errs = append(errs, l.differences(parts)...)
	if len(errs) > 0 {
		message.Error(l.Stderr, errors.Join(errs...))
		return errTold
	}
	if l.noStubs || l.patch.NoRecords {
		return nil
	}
	need := stubs.New(l.stubOptions())
	for i := range parts {
		need.Merge(parts[i].need)
	}
	if need.Missing() {
		if err := l.addLibraries(need); err != nil {
			return err
		}
	}
	if !need.Missing() {
		return nil
	}
	return l.addObject(need)
}

// linkPart is what a file is to a link.
type linkPart struct {
	need    *stubs.Need
	earlier bool  // it holds records of an earlier conversion with the flags of this one
	other   error // or with others
	err     error
}

func (l *link) stubOptions() stubs.Options {
	return stubs.Options{
		Names: l.patch.Names, ProbePrefix: l.patch.ProbePrefix, Thunk: l.patch.ReturnThunk, Layouts: l.patch.Layout.Candidates(),
		Converted: true, Hidden: l.patch.Layout.Format == linkerset.Relative,
	}
}

// notePlan takes in an object that is about to be converted. Of archives, the members
// that are not count too.
func (l *link) notePlan(s *input.Object, plan *patch.Plan) error {
	if s.Source.Member != nil {
		return nil
	}
	part := &linkPart{need: stubs.New(l.stubOptions())}
	l.noted.Store(s.Source.Name, part)
	return l.readObject(part, s.Object, plan.Scan)
}

// readPart reads an object, or the members of an archive.
func (l *link) readPart(in *linkInput) *linkPart {
	if part, ok := l.noted.Load(in.file); ok {
		return part.(*linkPart)
	}
	part := &linkPart{need: stubs.New(l.stubOptions())}
	f, err := input.Open(in.file)
	if err != nil {
		part.err = err
		return part
	}
	defer f.Close()
	if part.err = f.Load(); part.err != nil {
		return part
	}
	part.err = f.Each(input.Options{FollowThin: true}, func(src *input.Source) error {
		if typ, err := src.Type(); err != nil || typ != filetype.ELF {
			return err
		}
		o, err := elfreloc.Open(src, src.Size, src.Name)
		if err != nil || o.Type != elf.ET_REL {
			return nil // or it would be refused by now, if it held probes
		}
		return l.readObject(part, o, nil)
	})
	return part
}

func (l *link) readObject(part *linkPart, o *elfreloc.Object, scan *patch.Scan) error {
	found, err := o.NamesContain(l.anyNames)
	if err != nil || !found {
		return err
	}
	m := machines.Lookup(o.ABI())
	earlier, err := l.patch.CheckEarlier(o, m)
	if err != nil {
		part.other = err
	}
	part.earlier = part.earlier || earlier
	return part.need.AddScan(o, m, scan)
}

// differences are the records that do not go together. Those that are all alike do,
// whatever the flags are, if nothing is converted now.
func (l *link) differences(parts []*linkPart) []error {
	var others []error
	mixed := l.converted
	for _, p := range parts {
		mixed = mixed || p.earlier
		if p.other == nil {
			continue
		}
		others = append(others, p.other)
		mixed = mixed || cause(p.other) != cause(others[0])
	}
	if !mixed {
		return nil
	}
	return others
}

func cause(err error) string {
	if of := (*elfreloc.Error)(nil); errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}

// addLibraries takes in what shared libraries define.
func (l *link) addLibraries(need *stubs.Need) error {
	for _, in := range l.inputs {
		if in.elf != elf.ET_DYN {
			continue
		}
		f, err := input.Open(in.file)
		if err != nil {
			continue
		}
		o, err := elfreloc.Open(f, f.Info.Size(), in.file)
		if err == nil {
			err = need.Add(o, nil)
		}
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// addObject writes what is missing.
func (l *link) addObject(need *stubs.Need) error {
	data, err := need.Object()
	if err != nil {
		return err
	}
	if err := l.needTemp(); err != nil {
		return err
	}
	file, err := l.writeTemp(addedName, data)
	if err != nil {
		return err
	}
	l.names.Add(file, addedName)
	l.added = &addition{file, l.placeOfObject()}
	return nil
}

// placeOfObject is behind the last object that has to do with probes: there objects
// are read, and as a part of the link. Where only archives have, it is before the
// first of them.
func (l *link) placeOfObject() int {
	args := l.line.Args
	first := len(args)
	for i := len(args) - 1; i >= 0; i-- {
		in := l.byArg[i]
		if len(l.generated[i]) > 0 {
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

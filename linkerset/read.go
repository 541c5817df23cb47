package linkerset

import (
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// Entry is a record as an image holds it.
type Entry struct {
	Layout  Layout
	Kind    arch.Kind
	Record  image.Addr // of the record itself
	Probe   image.Ref  // the probe object; which probe that is, Probes tells
	Address image.Addr // in code: of the instruction that is executed when the probe is reached
}

// Fault is an error of a record: it leads to no site, or cannot be followed. What is
// wrong is an *elfreloc.Error.
type Fault struct {
	Record image.Addr
	err    error // names the file and the place
}

func (f *Fault) Error() string { return f.err.Error() }
func (f *Fault) Unwrap() error { return f.err }

// Read returns the records that an image holds in a layout, in their order: those of
// probe calls first. Anything else is left out, and is in faults; err, an
// *elfreloc.Error, means that no records of the layout could be read.
func (l Layout) Read(im image.Image) (entries []Entry, faults []*Fault, err error) {
	err = l.Each(im, func(e *Entry, fault *Fault) error {
		if fault != nil {
			faults = append(faults, fault)
		} else {
			entries = append(entries, *e)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return entries, faults, nil
}

// Each calls f with each record that Read returns, or with the fault of one. The entry is
// good until f returns. Each returns the first error of f, or one of Read.
func (l Layout) Each(im image.Image, f func(e *Entry, fault *Fault) error) error {
	for k := range arch.Kinds {
		name := l.Section(k)
		if name == "" {
			continue // there are none of this kind
		}
		arrays, err := im.Arrays(name)
		if err != nil {
			return err
		}
		for _, a := range arrays {
			if l.Name != "" && a.Writable != l.writable() {
				continue // another layout's, that has the same name
			}
			if err := l.eachOf(im, k, a, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachOf is Each for the records of an array.
func (l Layout) eachOf(im image.Image, k arch.Kind, a image.Range, f func(e *Entry, fault *Fault) error) error {
	size := uint64(l.Size(im.Encoding().Word()))
	if a.Size%size != 0 {
		return &elfreloc.Error{File: im.Name(), Section: a.Name, Err: fmt.Errorf("%d bytes of records of %d bytes", a.Size, size)}
	}
	var e Entry
	for off := uint64(0); off < a.Size; off += size {
		var fault *Fault
		e, fault = l.ReadRecord(im, k, a.Start.Add(off))
		if err := f(&e, fault); err != nil {
			return err
		}
	}
	return nil
}

// ReadRecord reads the record of a kind of site at an address. The fault is nil unless it leads to no site, or cannot be
// followed.
func (l Layout) ReadRecord(im image.Image, k arch.Kind, at image.Addr) (Entry, *Fault) {
	e := Entry{Layout: l, Kind: k, Record: at}
	if err := e.read(im, at, formats[l.Format].record); err != nil {
		return e, &Fault{at, err}
	}
	return e, nil
}

// read follows the fields of a record, or of what it points to.
func (e *Entry) read(im image.Image, at image.Addr, fields []Field) error {
	for _, f := range fields {
		field := im.Word
		if f.Distance {
			field = im.Distance
		}
		ref, err := field(at)
		if err != nil {
			return err
		}
		switch f.To {
		case ToProbe:
			e.Probe = ref
		case ToSite:
			if ref.Null() {
				return recordError(im, e.Record, "a record without a site")
			}
			if ref.Undefined {
				return recordError(im, e.Record, "a record of a site that is not in code, at %q", ref.Symbol)
			}
			if !im.Executable(ref.Addr) {
				return recordError(im, e.Record, "a record of a site that is not in code, at %s", im.Place(ref.Addr))
			}
			e.Address = ref.Addr
		case ToStructure:
			if ref.Null() || ref.Undefined {
				return recordError(im, e.Record, "a pointer to no record")
			}
			return e.read(im, ref.Addr, formats[e.Layout.Format].structure)
		}
		at = at.Add(uint64(f.Size(im.Encoding().Word())))
	}
	return nil
}

func recordError(im image.Image, at image.Addr, format string, args ...any) error {
	return &elfreloc.Error{File: im.Name(), Section: im.Place(at), Err: fmt.Errorf(format, args...)}
}

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/debuginfo/debugfile"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/input"
	"sdtconvert/resolve"
)

// unit is an ELF file whose code is looked at, in the file or where it is loaded.
type unit struct {
	module string // its name in a listing
	path   string
	object *elfreloc.Object
	image  image.Image // of the file
	base   uint64      // what a loader has added to its addresses

	functions *resolve.Table
	source    *lines.Table // nil when it is not wanted
	lookup
	warn  func(error)
	files []io.Closer
}

// openUnit opens an object or a linked image.
func openUnit(file string, look lookup, warn func(error)) (*unit, error) {
	in, err := input.Open(file)
	if err != nil {
		return nil, err
	}
	u, err := newUnit(in.Source(), look, warn)
	if err != nil {
		in.Close()
		return nil, err
	}
	u.files = append(u.files, in)
	return u, nil
}

// newUnit makes a unit of a source, which has to be good for as long as it is used.
func newUnit(src *input.Source, look lookup, warn func(error)) (*unit, error) {
	o, err := src.Image()
	if err != nil {
		return nil, err
	}
	u := unitOf(src, o.Object, look, warn)
	u.image, err = image.Open(o.Object, o.Machine)
	return u, err
}

// unitOf makes a unit without an image.
func unitOf(src *input.Source, o *elfreloc.Object, look lookup, warn func(error)) *unit {
	u := &unit{module: filepath.Base(src.File.Path), path: src.File.Path, object: o, lookup: look, warn: warn}
	if src.Member != nil {
		u.module = filepath.Base(src.Member.Name)
	}
	return u
}

// moduleUnit is a file that a process has loaded. The process holds it open.
func moduleUnit(m *image.Module, look lookup, warn func(error)) *unit {
	return &unit{module: filepath.Base(m.Path), path: m.Path, object: m.Object, image: m.Image, base: m.Base, lookup: look, warn: warn}
}

// readNames reads what names addresses: functions and, where it is wanted,
// source lines. Before that a unit can say nothing of an address.
func (u *unit) readNames() (err error) {
	if u.functions, err = resolve.New(u.object, resolve.Options{Path: u.path, Warn: u.warn}); err != nil {
		return err
	}
	if !u.lookup.source {
		return nil
	}
	u.readLines()
	return nil
}

// readLines finds the debug information, of the file itself or of its separate
// debug file. That there is none, or that it makes no sense, is no error.
func (u *unit) readLines() {
	o := u.object
	if !slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool { return isLineTable(s.Name) }) {
		debug, err := debugfile.Open(o, u.path, nil)
		if err != nil {
			u.warn(err)
		}
		if debug == nil {
			return
		}
		u.files = append(u.files, debug)
		o = debug.Object
	}
	var err error
	if u.source, err = lines.New(o, u.image.Machine()); err != nil {
		u.warn(err)
	}
}

func isLineTable(section string) bool { return section == ".debug_line" || section == ".zdebug_line" }

// Close closes the files of a unit, which can name no address any more. It
// warns of what was wrong with its debug information, which look-ups have met.
func (u *unit) Close() error {
	var all []error
	if u.source != nil && u.source.Err() != nil {
		u.warn(u.source.Err())
	}
	for _, f := range u.files {
		all = append(all, f.Close())
	}
	return errors.Join(all...)
}

// placed is what is known of an address.
type placed struct {
	Function       string  `json:"function,omitempty"`
	FunctionOffset uint64  `json:"function_offset"`
	Symbol         string  `json:"symbol,omitempty"`    // where it differs from Function
	NoSymbol       bool    `json:"no_symbol,omitempty"` // Function is made up
	Source         string  `json:"source,omitempty"`
	Inlines        []frame `json:"inlines,omitempty"`

	shown string // the symbol, as people want to see it
}

// String shows an address as symbol+offset, and tells when that is no symbol.
func (p placed) String() string {
	if p.Function == "" {
		return "-"
	}
	text := fmt.Sprintf("%s+%#x", p.shown, p.FunctionOffset)
	if p.NoSymbol {
		text += " (no symbol)"
	}
	return text
}

// frame is one of the functions that an address lies in, the innermost first, and
// where it is there: the line of the code, and then those of the calls that were
// inlined.
type frame struct {
	Function string `json:"function"`
	Source   string `json:"source,omitempty"`
}

// inFile is where an address is in the file.
func (u *unit) inFile(a image.Addr) image.Addr {
	return image.Addr{Section: a.Section, Offset: a.Offset - u.base}
}

func (u *unit) function(a image.Addr) (resolve.Function, bool) {
	a = u.inFile(a)
	f, ok := u.functions.Lookup(a.Section, a.Offset)
	if u.demangle {
		f.Name = resolve.Demangle(f.Name)
	}
	return f, ok
}

// place tells what is known of an address.
func (u *unit) place(a image.Addr) placed {
	var p placed
	if f, ok := u.function(a); ok {
		p.Function, p.FunctionOffset = f.Name, u.inFile(a).Offset-f.Start
		if p.shown = f.Raw; f.Raw != f.Name {
			p.Symbol = f.Raw
		}
		p.NoSymbol = !f.From.IsSymbol()
		if u.demangle {
			p.shown = resolve.Demangle(f.Raw)
		}
	}
	a = u.inFile(a)
	if u.source == nil {
		return p
	}
	p.Source = u.source.Lookup(a.Section, a.Offset)
	if u.inlines {
		frames := u.source.Inlines(a.Section, a.Offset)
		for i := 0; i < len(frames) && len(frames) > 1; i++ {
			p.Inlines = append(p.Inlines, u.frame(frames[i]))
		}
		if n := len(p.Inlines); n > 0 && p.Function != "" {
			p.Inlines[n-1].Function = p.Function // as everywhere: the debug information may have another name
		}
	}
	return p
}

func (u *unit) frame(f lines.Frame) frame {
	name := f.Function
	if u.demangle {
		name = resolve.Demangle(name)
	}
	if f.File == "" {
		return frame{Function: name}
	}
	return frame{name, fmt.Sprintf("%s:%d", f.File, f.Line)}
}

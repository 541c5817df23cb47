// Package locate tells what an address of code stands for: the function that holds
// it, its source line, and the functions that were inlined there.
//
// Code is that of one object or image, in a file or where a process has loaded it;
// a Target is all that addresses may be of: a file, or a process with its modules.
package locate

import (
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/input"
	"sdtconvert/resolve"
)

// Options say what is wanted of places, and how it is shown.
type Options struct {
	Lines    bool // source lines; without them no debug information is read
	Inlines  bool // the functions that were inlined, too; of no use without Lines
	Demangle bool // names of C++ and Rust as in the source

	// Warn is told what was passed over: debug information that makes no sense, or
	// is of another build. It has to be there.
	Warn func(error)
}

// Code is the code of one object or image. It serves one goroutine at a time, and
// is good for as long as what it was made of is open.
type Code struct {
	*fileCode
	Base uint64 // what a loader has added to the addresses of the file; 0 in a file
}

// fileCode is the code of a file, which several modules may share.
type fileCode struct {
	Path   string // of the file
	root   string // of the process that has loaded it, "" for ours
	Module string // what dtrace(1) calls it: moduleName of the file, or the name of the member of an archive
	Object *elfreloc.Object
	Image  image.Image // of the file: at the addresses that it was linked for

	o         Options
	read      bool
	err       error // of Read
	functions *resolve.Table
	recorded  *recordedFunctions   // once an address was looked up that no symbol holds
	info      *debuginfo.Data      // nil if there are none, or none are wanted
	debug     *debuginfo.DebugFile // the separate debug file; nil until it may be wanted, or if there is none

	debugSought bool
	debugErr    error // of its search
}

// Open makes the code of a source, which has to be an object or a linked image for
// a known machine.
func Open(src *input.Source, o Options) (*Code, error) {
	object, err := src.Image()
	if err != nil {
		return nil, err
	}
	return NewCode(object, o)
}

// NewCode makes the code of an object, which has to be for a known machine.
func NewCode(object *input.Object, o Options) (*Code, error) {
	im, err := image.Open(object.Object, object.Machine)
	if err != nil {
		return nil, err
	}
	src := object.Source
	c := &Code{fileCode: &fileCode{Path: src.File.Path, Module: moduleName(src.File.Path, object.Object), Object: object.Object, Image: im, o: o}}
	if src.Member != nil {
		c.Module = filepath.Base(src.Member.Name)
	}
	return c, nil
}

// NewModuleCode makes the code of a module that can be read, at the addresses where the
// process has it.
func NewModuleCode(m *image.Module, o Options) *Code {
	return &Code{&fileCode{Path: m.Path, root: m.Root, Module: filepath.Base(m.Path), Object: m.Object, Image: m.Image, o: o}, m.Base}
}

// Modules makes the codes of a process's modules. What is read of a file that is loaded several times is read once.
type Modules struct {
	o     Options
	files map[image.Image]*fileCode
}

// NewModules makes no code yet. Close it.
func NewModules(o Options) *Modules { return &Modules{o, map[image.Image]*fileCode{}} }

// CodeOf returns the code of a module that can be read. It is good until Close.
func (s *Modules) CodeOf(m *image.Module) *Code {
	file := s.files[m.Image]
	if file == nil {
		file = NewModuleCode(m, s.o).fileCode
		s.files[m.Image] = file
	}
	return &Code{file, m.Base}
}

// Close closes all codes.
func (s *Modules) Close() error {
	var errs []error
	for _, file := range s.files {
		errs = append(errs, (&Code{fileCode: file}).Close())
	}
	return errors.Join(errs...)
}

// Read reads what names addresses, once: the functions and, where they are wanted, the
// units of the debug information. It has to come before the first address is looked
// up. Missing debug information, or one that makes no sense, is not an error.
//
// Both may come from a separate debug file. It is looked for once, as
// debuginfo.OpenDebugFile does: under /usr/lib/debug by its build id, else by the name in
// .gnu_debuglink, beside the file, in .debug there, and under /usr/lib/debug in the
// file's directory. Functions come from it if the file has no .symtab, and lines if it
// has no .debug_line.
func (c *Code) Read() error {
	if c.read {
		return c.err
	}
	c.read = true
	c.functions, c.err = resolve.New(c.Object, resolve.Options{Debug: c.debugObject, Warn: c.o.Warn})
	if c.err == nil && c.o.Lines {
		c.readDebugInfo()
	}
	return c.err
}

// debugObject returns the separate debug file, nil if there is none. It is looked for once.
func (c *Code) debugObject() (*elfreloc.Object, error) {
	if !c.debugSought {
		c.debugSought = true
		c.debug, c.debugErr = debuginfo.OpenDebugFileBelow(c.root, c.Object, c.Path, nil)
	}
	if c.debug == nil {
		return nil, c.debugErr
	}
	return c.debug.Object, c.debugErr
}

// readDebugInfo finds the debug information, of the file itself or of its separate debug
// file.
func (c *Code) readDebugInfo() {
	o := c.Object
	if !slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool { return isLineTable(s.Name) }) {
		var err error
		if o, err = c.debugObject(); err != nil {
			c.o.Warn(err)
		}
		if o == nil {
			return
		}
	}
	var err error
	if c.info, err = debuginfo.New(o, c.Image.Machine()); err != nil {
		c.o.Warn(err)
	}
}

func isLineTable(section string) bool { return section == ".debug_line" || section == ".zdebug_line" }

// Functions returns all functions, by the addresses of the file. Read comes first.
func (c *Code) Functions() *resolve.Table { return c.functions }

// DebugInfo returns the debug information, by the addresses of the file; nil where there is none.
// Read comes first.
func (c *Code) DebugInfo() *debuginfo.Data { return c.info }

// ReadDebugInfo is DebugInfo, also if the options want no lines: for what else it has. Read comes first.
func (c *Code) ReadDebugInfo() *debuginfo.Data {
	if c.info == nil {
		c.readDebugInfo()
	}
	return c.info
}

// Close closes the separate debug file. The code can name no address any more. It
// warns of what was wrong with the debug information and the tables of functions, which look-ups have met.
func (c *Code) Close() error {
	var err error
	if c.info != nil {
		err = c.info.Err()
	}
	if err != nil {
		c.o.Warn(err)
	}
	if c.recorded != nil {
		for _, fault := range c.recorded.faults {
			c.o.Warn(fault)
		}
	}
	if c.debug == nil {
		return nil
	}
	return c.debug.Close()
}

// moduleName returns what dtrace(1) calls the module of a file: the file's name, without
// .ko for modules of kernels, compressed or not. The kernel that FreeBSD's makefiles leave with its debug
// information, kernel.full or kernel.debug, is the module kernel, and so are coffee.ko.full
// and coffee.ko.debug the module coffee.
func moduleName(path string, o *elfreloc.Object) string {
	name := filepath.Base(path)
	if o.OSABI() == elf.ELFOSABI_FREEBSD {
		name = trimSuffix(trimSuffix(name, ".debug"), ".full")
	}
	for _, compression := range []string{".xz", ".zst", ".gz"} {
		name = trimSuffix(name, ".ko"+compression)
	}
	return trimSuffix(name, ".ko")
}

// trimSuffix removes a suffix, unless it is all there is.
func trimSuffix(name, suffix string) string {
	if short := strings.TrimSuffix(name, suffix); short != "" {
		return short
	}
	return name
}

// Place is what is known of an address. docs/output.md describes its JSON.
type Place struct {
	// Function is the name of the innermost function that holds the address as the
	// source has it, "" when there is none, and FunctionOffset the distance from its
	// start in bytes.
	Function       string `json:"function,omitempty"`
	FunctionOffset uint64 `json:"function_offset"`

	Symbol   string  `json:"symbol,omitempty"`    // where it differs from Function
	NoSymbol bool    `json:"no_symbol,omitempty"` // Function is made up: only unwind tables know of it
	Recorded bool    `json:"recorded,omitempty"`  // Function is not that of a symbol, but of the image's table of functions
	Unsized  bool    `json:"unsized,omitempty"`   // the symbol has no size, and nothing else tells that the function reaches this far
	Source   string  `json:"source,omitempty"`    // file:line
	Inlines  []Frame `json:"inlines,omitempty"`   // none, or at least two

	file        image.Addr // the address in the file
	hasFunction bool       // some function holds it
	display     string     // the symbol, as people want to see it
	rest        uint64     // bytes of the function from the address on
}

// Rest returns how many bytes the function has from the place on, 0 if its size is not known.
func (p *Place) Rest() uint64 { return p.rest }

// Known reports whether some function holds the address.
func (p *Place) Known() bool { return p.hasFunction }

// Frame is one of the functions that an address lies in, the innermost first, and
// where it is there: the line of the code, and then those of the calls that were
// inlined.
type Frame struct {
	Function string `json:"function"`
	Source   string `json:"source,omitempty"` // file:line
}

// String shows an address as symbol+offset, and says if that is not a symbol, or
// one without a size that nothing else confirms.
func (p *Place) String() string {
	if p.Function == "" {
		return "-"
	}
	text := fmt.Sprintf("%s+%#x", p.display, p.FunctionOffset)
	switch {
	case p.Recorded:
		text += " (recorded)"
	case p.NoSymbol:
		text += " (no symbol)"
	case p.Unsized:
		text += " (no size)"
	}
	return text
}

// Function looks up the function that holds an address. The place has no source yet.
func (c *Code) Function(a image.Addr) Place {
	p := Place{file: c.inFile(a)}
	f, ok := c.functions.Lookup(p.file.Section, p.file.Offset)
	if !ok || !f.From.IsSymbol() || f.Unsized {
		start := uint64(0)
		if ok && !f.From.IsSymbol() {
			start = f.Start
		}
		if recorded, found := c.Recorded(a, start); found {
			f, ok, p.Recorded = recorded, true, true
		}
	}
	if !ok {
		return p
	}
	p.hasFunction = true
	if !f.Unsized {
		p.rest = max(f.Start+f.Size, p.file.Offset) - p.file.Offset
	}
	p.Function, p.display, p.FunctionOffset = c.name(f.Name), c.name(f.Raw), p.file.Offset-f.Start
	if f.Raw != p.Function {
		p.Symbol = f.Raw
	}
	p.NoSymbol, p.Unsized = !f.From.IsSymbol() && !p.Recorded, f.Unsized
	return p
}

// Complete adds to a place that Function has returned its line, and the functions
// that were inlined there, if that is wanted.
func (c *Code) Complete(p *Place) {
	if c.info == nil {
		return
	}
	p.Source = c.info.Lookup(p.file.Section, p.file.Offset)
	if !c.o.Inlines {
		return
	}
	frames := c.info.Inlines(p.file.Section, p.file.Offset)
	if len(frames) < 2 {
		return
	}
	for _, f := range frames {
		p.Inlines = append(p.Inlines, c.frame(f))
	}
	if p.Function != "" {
		p.Inlines[len(frames)-1].Function = p.Function // as everywhere: the debug information may have another name
	}
}

// Source returns the file and line of an address, "" and 0 where they are not known.
func (c *Code) Source(a image.Addr) (file string, line int) {
	if c.info == nil {
		return "", 0
	}
	a = c.inFile(a)
	return c.info.Source(a.Section, a.Offset)
}

// At returns what is known of an address.
func (c *Code) At(a image.Addr) Place {
	p := c.Function(a)
	c.Complete(&p)
	return p
}

// inFile returns where an address is in the file.
func (c *Code) inFile(a image.Addr) image.Addr {
	return image.Addr{Section: a.Section, Offset: a.Offset - c.Base}
}

func (c *Code) frame(f debuginfo.Frame) Frame {
	if f.File == "" {
		return Frame{Function: c.name(f.Function)}
	}
	return Frame{c.name(f.Function), fmt.Sprintf("%s:%d", f.File, f.Line)}
}

// name returns how the name of a function is shown.
func (c *Code) name(name string) string {
	if c.o.Demangle {
		return resolve.Demangle(name)
	}
	return name
}

package locate

import (
	"fmt"

	"sdtconvert/image"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/resolve"
)

// Place is what is known of an address. docs/output.md describes its JSON.
type Place struct {
	// Function is the name of the innermost function that holds the address as the
	// source has it, "" when there is none, and FunctionOffset the distance from its
	// start in bytes.
	Function       string `json:"function,omitempty"`
	FunctionOffset uint64 `json:"function_offset"`

	Symbol   string  `json:"symbol,omitempty"`    // where it differs from Function
	NoSymbol bool    `json:"no_symbol,omitempty"` // Function is made up: only unwind tables know of it
	Unsized  bool    `json:"unsized,omitempty"`   // the symbol has no size, and nothing else tells that the function reaches this far
	Source   string  `json:"source,omitempty"`    // file:line
	Inlines  []Frame `json:"inlines,omitempty"`   // none, or at least two

	file  image.Addr // the address in the file
	known bool       // some function holds it
	shown string     // the symbol, as people want to see it
}

// Known reports whether some function holds the address.
func (p *Place) Known() bool { return p.known }

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
	text := fmt.Sprintf("%s+%#x", p.shown, p.FunctionOffset)
	switch {
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
	if !ok {
		return p
	}
	p.known = true
	p.Function, p.shown, p.FunctionOffset = c.name(f.Name), c.name(f.Raw), p.file.Offset-f.Start
	if f.Raw != p.Function {
		p.Symbol = f.Raw
	}
	p.NoSymbol, p.Unsized = !f.From.IsSymbol(), f.Unsized
	return p
}

// Complete adds to a place that Function has returned its line, and the functions
// that were inlined there, if that is wanted.
func (c *Code) Complete(p *Place) {
	if c.lines == nil {
		return
	}
	p.Source = c.lines.Lookup(p.file.Section, p.file.Offset)
	if !c.o.Inlines {
		return
	}
	frames := c.lines.Inlines(p.file.Section, p.file.Offset)
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
	if c.lines == nil {
		return "", 0
	}
	a = c.inFile(a)
	return c.lines.Source(a.Section, a.Offset)
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

func (c *Code) frame(f lines.Frame) Frame {
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

package events

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/scanner"

	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// value is one side of a comparison, of an event: a text or a number.
type value struct {
	isText bool
	text   func(e *Event) (text string, ok bool)
	number func(e *Event) (n number, ok bool)

	argument   *Reference                 // nil if the value is no argument
	isConstant bool                       // a number or a text that the filter has
	ofSite     func(s *probe.Site) string // a text that all events of a site share, nil for others
	shown      string                     // a text without its quotation marks, another value as the filter has it
}

// number is a number of an event or of a filter.
type number struct {
	bits            uint64 // of a float64 if isFloat is set
	signed, isFloat bool
}

func (n number) isNegative() bool { return n.signed && int64(n.bits) < 0 }

// float returns the nearest floating-point number.
func (n number) float() float64 {
	switch {
	case n.isFloat:
		return math.Float64frombits(n.bits)
	case n.signed:
		return float64(int64(n.bits))
	}
	return float64(n.bits)
}

// compare compares two numbers. ok is false if one of them is none.
func (n number) compare(other number) (order int, ok bool) {
	if n.isFloat || other.isFloat {
		x, y := n.float(), other.float()
		return cmp.Compare(x, y), !math.IsNaN(x) && !math.IsNaN(y)
	}
	switch {
	case n.isNegative() && !other.isNegative():
		return -1, true
	case other.isNegative() && !n.isNegative():
		return 1, true
	}
	return cmp.Compare(n.bits, other.bits), true
}

// constants and fields are the values that have a name of their own.
var (
	constants = map[string]uint64{"false": 0, "true": 1}
	fields    = map[string]value{
		"tid":      {number: func(e *Event) (number, bool) { return number{bits: uint64(e.Thread), signed: true}, e.Thread != 0 }},
		"pid":      {number: func(e *Event) (number, bool) { return number{bits: uint64(e.Process.ID), signed: true}, true }},
		"provider": siteText(func(s *probe.Site) string { return s.Provider }),
		"module":   siteText(func(s *probe.Site) string { return s.Probe.Module }),
		"function": siteText(func(s *probe.Site) string { return s.Function }),
		"name":     siteText(func(s *probe.Site) string { return s.Name }),
	}
)

func siteText(of func(s *probe.Site) string) value {
	return value{isText: true, text: func(e *Event) (string, bool) { return of(e.Site), true }, ofSite: of}
}

// value reads a value.
func (p *filterParser) value() value {
	token, kind := p.token, p.kind
	p.next()
	field, isField := fields[token]
	field.shown = token
	constant, isConstant := constants[token]
	switch {
	case token == "-" && (p.kind == scanner.Int || p.kind == scanner.Float):
		v := p.value()
		n, _ := v.number(nil)
		if n.isFloat {
			return constantOf("-"+v.shown, number{bits: math.Float64bits(-n.float()), isFloat: true})
		}
		return constantOf("-"+v.shown, number{bits: -n.bits, signed: true})
	case kind == scanner.Float:
		f, err := strconv.ParseFloat(token, 64)
		if err != nil {
			p.fail("%s is no number", token)
		}
		return constantOf(token, number{bits: math.Float64bits(f), isFloat: true})
	case kind == scanner.Int:
		n, err := strconv.ParseUint(token, 0, 64)
		if err != nil {
			p.fail("%s is no number of 64 bits", token)
		}
		return constantOf(token, number{bits: n})
	case kind == scanner.String || kind == scanner.RawString:
		text, err := strconv.Unquote(token)
		if err != nil {
			p.fail("%s is no string", token)
		}
		return value{isText: true, isConstant: true, shown: text, text: func(*Event) (string, bool) { return text, true }}
	case isConstant:
		return constantOf(token, number{bits: constant})
	case isField:
		return field
	}
	r, err := parseReference(token)
	if err != nil || kind != scanner.Ident {
		p.fail("want argN, an argument's name, tid, pid, provider, module, function, name, a number or a string, got %q", token)
	}
	return value{argument: &r, shown: token, text: r.text, number: r.number}
}

func constantOf(shown string, n number) value {
	return value{isConstant: true, shown: shown, number: func(*Event) (number, bool) { return n, true }}
}

// Reference is an argument of probes, by its number or its name.
type Reference struct {
	index int
	name  string // "" for a number
}

func (r *Reference) String() string {
	if r.name != "" {
		return r.name
	}
	return fmt.Sprintf("arg%d", r.index)
}

// parseReference reads the name of an argument, as a line shows it: arg0 is the first of those without one.
func parseReference(name string) (r Reference, err error) {
	digits, ok := strings.CutPrefix(name, "arg")
	n, err := strconv.ParseUint(digits, 10, 32)
	switch {
	case ok && err == nil && n < probe.MaxArguments:
		return Reference{index: int(n)}, nil
	case ok && err == nil:
		return r, fmt.Errorf("%q is no argument: arg0 is the first, arg%d the last", name, probe.MaxArguments-1)
	case name == "" || name != message.Escape(name) || strings.ContainsAny(name, ", "):
		return r, fmt.Errorf("%q is no argument: arg0 is the first, and names are those that lines show", name)
	}
	return Reference{name: name}, nil
}

// Find returns the index of the argument of a site. ok is false if the site has none of that number or name.
func (r *Reference) Find(s *probe.Site) (index int, ok bool) {
	if r.name == "" {
		return r.index, r.index < len(s.Arguments)
	}
	for i := range s.Arguments {
		if s.Arguments[i].Name == r.name {
			return i, true
		}
	}
	return 0, false
}

// text returns the text of an argument, as a line shows it.
func (r *Reference) text(e *Event) (text string, ok bool) {
	i, ok := r.Find(e.Site)
	if !ok || i >= len(e.Values) {
		return "", false
	}
	a, copied := &e.Arguments[i], &e.Texts[i]
	switch {
	case copied.Unreadable:
	case a.Format == probe.Text, a.Format == probe.TypeName && copied.Text != "":
		return copied.Text, true
	case a.Enumerators != nil:
		text, ok := a.Enumerators[int64(e.Values[i])]
		return text, ok
	case a.Format == probe.Boolean:
		return strconv.FormatBool(e.Values[i] != 0), true
	}
	return "", false
}

// number returns the number of an argument.
func (r *Reference) number(e *Event) (n number, ok bool) {
	i, ok := r.Find(e.Site)
	if !ok || i >= len(e.Values) {
		return n, false
	}
	a, copied := &e.Arguments[i], &e.Texts[i]
	if a.Format == probe.Unreadable || copied.Lost || a.Format != probe.Text && copied.Unreadable {
		return n, false
	}
	return number{bits: e.Values[i], signed: a.Signed && a.Format != probe.Text && a.Format != probe.Float, isFloat: a.Format == probe.Float}, true
}

package trace

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/scanner"
)

// Filter selects events:
//
//	filter     = or
//	or         = and { "||" and }
//	and        = term { "&&" term }
//	term       = "!" term | "(" or ")" | value comparison value
//	value      = argN | tid | name | function | number | string
//	comparison = "==" | "!=" | "<" | "<=" | ">" | ">="
type Filter struct {
	match func(e *Event) bool
}

// matches reports whether a filter selects an event. A nil one selects all.
func (f *Filter) matches(e *Event) bool { return f == nil || f.match(e) }

// value is one side of a comparison, of an event: a text or a number.
type value struct {
	isText bool
	text   func(e *Event) string
	number func(e *Event) (n uint64, signed, ok bool)
}

// ParseFilter reads a filter.
func ParseFilter(text string) (f *Filter, err error) {
	p := &filterParser{}
	p.Init(strings.NewReader(text))
	p.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanStrings | scanner.ScanRawStrings
	p.Error = func(*scanner.Scanner, string) { p.failed = true }
	defer func() {
		if wrong, ok := recover().(filterError); ok {
			f, err = nil, fmt.Errorf("invalid filter %q: %s", text, string(wrong))
		}
	}()
	p.next()
	match := p.or()
	if p.token != "" {
		p.fail("unexpected %q", p.token)
	}
	return &Filter{match}, nil
}

// filterError is what the parser panics with.
type filterError string

type filterParser struct {
	scanner.Scanner
	kind   rune
	token  string // "" at the end
	failed bool
}

func (p *filterParser) fail(format string, args ...any) {
	panic(filterError(fmt.Sprintf(format, args...)))
}

// next reads a token; operators of two characters are one.
func (p *filterParser) next() {
	p.kind = p.Scan()
	p.token = p.TokenText()
	if p.kind == scanner.EOF {
		p.token = ""
	}
	if second := p.Peek(); strings.Contains("= == != < > <= >= && ||", p.token+string(second)) && strings.ContainsAny(p.token, "=!<>&|") && strings.ContainsRune("=&|", second) {
		p.token += string(p.Next())
	}
	if p.failed {
		p.fail("a string without an end")
	}
}

func (p *filterParser) or() func(*Event) bool {
	left := p.and()
	for p.token == "||" {
		p.next()
		a, b := left, p.and()
		left = func(e *Event) bool { return a(e) || b(e) }
	}
	return left
}

func (p *filterParser) and() func(*Event) bool {
	left := p.term()
	for p.token == "&&" {
		p.next()
		a, b := left, p.term()
		left = func(e *Event) bool { return a(e) && b(e) }
	}
	return left
}

func (p *filterParser) term() func(*Event) bool {
	switch p.token {
	case "!":
		p.next()
		inner := p.term()
		return func(e *Event) bool { return !inner(e) }
	case "(":
		p.next()
		inner := p.or()
		if p.token != ")" {
			p.fail("missing )")
		}
		p.next()
		return inner
	}
	return p.comparison()
}

// comparisons tell what each operator makes of an order.
var comparisons = map[string]func(order int) bool{
	"==": func(o int) bool { return o == 0 }, "!=": func(o int) bool { return o != 0 },
	"<": func(o int) bool { return o < 0 }, "<=": func(o int) bool { return o <= 0 },
	">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 },
}

func (p *filterParser) comparison() func(*Event) bool {
	a := p.value()
	holds := comparisons[p.token]
	if holds == nil {
		p.fail("want ==, !=, <, <=, > or >=, got %q", p.token)
	}
	p.next()
	b := p.value()
	switch {
	case a.text != nil && b.text != nil && (a.isText || b.isText):
		return func(e *Event) bool { return holds(cmp.Compare(a.text(e), b.text(e))) }
	case a.number == nil || b.number == nil:
		p.fail("a text and a number are compared")
	}
	return func(e *Event) bool {
		x, xSigned, ok1 := a.number(e)
		y, ySigned, ok2 := b.number(e)
		return ok1 && ok2 && holds(compareNumbers(x, xSigned, y, ySigned))
	}
}

// compareNumbers compares numbers, of which those with a sign may be negative.
func compareNumbers(x uint64, xSigned bool, y uint64, ySigned bool) int {
	xNegative, yNegative := xSigned && int64(x) < 0, ySigned && int64(y) < 0
	if xNegative != yNegative {
		return map[bool]int{true: -1, false: 1}[xNegative]
	}
	return cmp.Compare(x, y)
}

func (p *filterParser) value() value {
	token, kind := p.token, p.kind
	p.next()
	switch {
	case token == "-" && p.kind == scanner.Int:
		v := p.value()
		return value{number: func(e *Event) (uint64, bool, bool) {
			n, _, ok := v.number(e)
			return -n, true, ok
		}}
	case kind == scanner.Int:
		n, err := strconv.ParseUint(token, 0, 64)
		if err != nil {
			p.fail("%s is no number of 64 bits", token)
		}
		return value{number: func(*Event) (uint64, bool, bool) { return n, false, true }}
	case kind == scanner.String || kind == scanner.RawString:
		text, err := strconv.Unquote(token)
		if err != nil {
			p.fail("%s is no string", token)
		}
		return value{isText: true, text: func(*Event) string { return text }}
	case token == "tid":
		return value{number: func(e *Event) (uint64, bool, bool) { return uint64(e.Thread), true, true }}
	case token == "name":
		return value{isText: true, text: func(e *Event) string { return e.Name }}
	case token == "function":
		return value{isText: true, text: func(e *Event) string { return e.Function }}
	}
	n, err := parseArgument(token)
	if err != nil {
		p.fail("want argN, tid, name, function, a number or a string, got %q", token)
	}
	return value{
		text: func(e *Event) string {
			switch {
			case n >= len(e.Texts) || n >= len(e.Arguments):
				return ""
			case e.Arguments[n].Format == Text:
				return e.Texts[n].Text
			}
			return e.Arguments[n].enumerators[int64(e.Values[n])]
		},
		number: func(e *Event) (uint64, bool, bool) {
			if n >= len(e.Values) || e.Arguments[n].Format == Unreadable || e.Arguments[n].Format != Text && e.Texts[n].Unreadable {
				return 0, false, false
			}
			return e.Values[n], e.Arguments[n].Signed, true
		},
	}
}

// parseArgument reads the name of an argument: arg0 is the first.
func parseArgument(name string) (int, error) {
	digits, ok := strings.CutPrefix(name, "arg")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n >= maxArguments {
		return 0, fmt.Errorf("%q is no argument: arg0 is the first, arg%d the last", name, maxArguments-1)
	}
	return n, nil
}

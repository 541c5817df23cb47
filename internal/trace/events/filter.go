package events

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/scanner"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/probe"
)

// Filter selects events:
//
//	filter     = or
//	or         = and { "||" and }
//	and        = term { "&&" term }
//	term       = "!" term | "(" or ")" | value comparison value
//	value      = argN | tid | name | function | number | string
//	comparison = "==" | "!=" | "<" | "<=" | ">" | ">="
type Filter struct{ predicate }

// predicate is a part of a filter.
type predicate struct {
	match func(e *Event) bool
	// required are comparisons of an argument with a number that are true wherever the predicate is.
	required []comparison
}

// comparison compares an argument with a number.
type comparison struct {
	argument   int
	operator   arch.Comparison
	number     uint64
	isNegative bool
}

// matches reports whether a filter selects an event. A nil one selects all.
func (f *Filter) matches(e *Event) bool { return f == nil || f.match(e) }

// value is one side of a comparison, of an event: a text or a number.
type value struct {
	isText bool
	text   func(e *Event) string
	number func(e *Event) (n uint64, signed, ok bool)

	argument   int  // its number from 1, 0 if the value is none
	isConstant bool // a number that the filter has
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

func (p *filterParser) or() predicate {
	left := p.and()
	for p.token == "||" {
		p.next()
		a, b := left, p.and()
		left = predicate{match: func(e *Event) bool { return a.match(e) || b.match(e) }}
	}
	return left
}

func (p *filterParser) and() predicate {
	left := p.term()
	for p.token == "&&" {
		p.next()
		a, b := left, p.term()
		left = predicate{func(e *Event) bool { return a.match(e) && b.match(e) }, append(a.required, b.required...)}
	}
	return left
}

func (p *filterParser) term() predicate {
	switch p.token {
	case "!":
		p.next()
		inner := p.term()
		return predicate{match: func(e *Event) bool { return !inner.match(e) }}
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

// operators are the comparisons, and what each makes of an order.
var operators = map[string]struct {
	arch.Comparison
	mirrored arch.Comparison
	holds    func(order int) bool
}{
	"==": {arch.Equal, arch.Equal, func(o int) bool { return o == 0 }},
	"!=": {arch.NotEqual, arch.NotEqual, func(o int) bool { return o != 0 }},
	"<":  {arch.Less, arch.Greater, func(o int) bool { return o < 0 }},
	"<=": {arch.LessOrEqual, arch.GreaterOrEqual, func(o int) bool { return o <= 0 }},
	">":  {arch.Greater, arch.Less, func(o int) bool { return o > 0 }},
	">=": {arch.GreaterOrEqual, arch.LessOrEqual, func(o int) bool { return o >= 0 }},
}

func (p *filterParser) comparison() predicate {
	a := p.value()
	operator, ok := operators[p.token]
	if !ok {
		p.fail("want ==, !=, <, <=, > or >=, got %q", p.token)
	}
	p.next()
	b := p.value()
	switch {
	case a.text != nil && b.text != nil && (a.isText || b.isText):
		return predicate{match: func(e *Event) bool { return operator.holds(cmp.Compare(a.text(e), b.text(e))) }}
	case a.number == nil || b.number == nil:
		p.fail("a text and a number are compared")
	}
	required := append(requiredComparison(&a, operator.Comparison, &b), requiredComparison(&b, operator.mirrored, &a)...)
	return predicate{func(e *Event) bool {
		x, xSigned, ok1 := a.number(e)
		y, ySigned, ok2 := b.number(e)
		return ok1 && ok2 && operator.holds(compareNumbers(x, xSigned, y, ySigned))
	}, required}
}

// requiredComparison returns the comparison of an argument with a number, none for other values.
func requiredComparison(argument *value, operator arch.Comparison, number *value) []comparison {
	if argument.argument == 0 || !number.isConstant {
		return nil
	}
	n, signed, _ := number.number(nil)
	return []comparison{{argument.argument - 1, operator, n, signed && int64(n) < 0}}
}

// Conditions returns what a trampoline of a site can test of a filter. The events that it makes are filtered still.
func (f *Filter) Conditions(s *probe.Site) (all []arch.Condition) {
	if f == nil {
		return nil
	}
	for _, c := range f.required {
		if c.argument >= len(s.Arguments) {
			continue
		}
		a := &s.Arguments[c.argument]
		inReach := c.isNegative && a.Signed || !c.isNegative && (!a.Signed || int64(c.number) >= 0)
		if isCheap := s.Layout.Arguments[c.argument].CopyAt == 0; isCheap && inReach && a.Format != probe.Text && a.Format != probe.Unreadable {
			all = append(all, arch.Condition{Operand: a.Operand, Comparison: c.operator, Number: c.number})
		}
	}
	return all
}

// compareNumbers compares numbers, of which those with a sign may be negative.
func compareNumbers(x uint64, xSigned bool, y uint64, ySigned bool) int {
	switch xNegative, yNegative := xSigned && int64(x) < 0, ySigned && int64(y) < 0; {
	case xNegative && !yNegative:
		return -1
	case yNegative && !xNegative:
		return 1
	}
	return cmp.Compare(x, y)
}

func (p *filterParser) value() value {
	token, kind := p.token, p.kind
	p.next()
	switch {
	case token == "-" && p.kind == scanner.Int:
		v := p.value()
		return value{isConstant: true, number: func(e *Event) (uint64, bool, bool) {
			n, _, ok := v.number(e)
			return -n, true, ok
		}}
	case kind == scanner.Int:
		n, err := strconv.ParseUint(token, 0, 64)
		if err != nil {
			p.fail("%s is no number of 64 bits", token)
		}
		return value{isConstant: true, number: func(*Event) (uint64, bool, bool) { return n, false, true }}
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
		argument: n + 1,
		text: func(e *Event) string {
			switch {
			case n >= len(e.Texts) || n >= len(e.Arguments):
				return ""
			case e.Arguments[n].Format == probe.Text:
				return e.Texts[n].Text
			}
			return e.Arguments[n].Enumerators[int64(e.Values[n])]
		},
		number: func(e *Event) (uint64, bool, bool) {
			if n >= len(e.Values) || e.Arguments[n].Format == probe.Unreadable || e.Arguments[n].Format != probe.Text && e.Texts[n].Unreadable {
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
	if !ok || err != nil || n < 0 || n >= probe.MaxArguments {
		return 0, fmt.Errorf("%q is no argument: arg0 is the first, arg%d the last", name, probe.MaxArguments-1)
	}
	return n, nil
}

package events

import (
	"cmp"
	"fmt"
	"strings"
	"text/scanner"

	"sdtconvert/arch"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/trace/probe"
)

// Filter selects events:
//
//	filter     = or
//	or         = and { "||" and }
//	and        = term { "&&" term }
//	term       = "!" term | "(" or ")" | value comparison value
//	value      = argN | an argument's name | tid | pid | provider | module | function | name | number | true | false | string
//	comparison = "==" | "!=" | "<" | "<=" | ">" | ">=" | "~"
//
// "~" compares a text with a glob.
type Filter struct {
	predicate
	comparisons []parsedComparison
}

// predicate is a part of a filter.
type predicate struct {
	match func(e *Event) bool
	// required are comparisons of an argument with a number that are true wherever the predicate is. If isWhole is set, the predicate is true
	// wherever they are.
	required []comparison
	isWhole  bool
}

// comparison compares an argument with a number.
type comparison struct {
	argument   Reference
	operator   arch.Comparison
	number     uint64
	isNegative bool
}

// matches reports whether a filter selects an event. A nil one selects all.
func (f *Filter) matches(e *Event) bool { return f == nil || f.match(e) }

// ParseFilter reads a filter.
func ParseFilter(text string) (f *Filter, err error) {
	p := newFilterParser(text)
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
	return &Filter{match, p.comparisons}, nil
}

// filterError is what the parser panics with.
type filterError string

type filterParser struct {
	scanner.Scanner
	kind  rune
	token string // "" at the end
	wrong string // what the scanner does not understand

	comparisons []parsedComparison
}

func newFilterParser(text string) *filterParser {
	p := &filterParser{}
	p.Init(strings.NewReader(text))
	p.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanFloats | scanner.ScanStrings | scanner.ScanRawStrings
	p.Error = func(_ *scanner.Scanner, wrong string) { p.wrong = wrong }
	return p
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
	switch p.wrong {
	case "":
	case "literal not terminated":
		p.fail("a string without an end")
	default:
		p.fail("%s", p.wrong)
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
		left = predicate{func(e *Event) bool { return a.match(e) && b.match(e) }, append(a.required, b.required...), a.isWhole && b.isWhole}
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
	token := p.token
	if !ok && token != "~" {
		p.fail("want ==, !=, <, <=, >, >= or ~, got %q", p.token)
	}
	p.next()
	b := p.value()
	p.comparisons = append(p.comparisons, parsedComparison{a, token, b})
	switch {
	case token == "~":
		return p.glob(&a, &b)
	case a.text != nil && b.text != nil && (a.isText || b.isText):
		return predicate{match: func(e *Event) bool {
			x, ok1 := a.text(e)
			y, ok2 := b.text(e)
			return ok1 && ok2 && operator.holds(cmp.Compare(x, y))
		}}
	case a.number == nil || b.number == nil:
		p.fail("a text and a number are compared")
	}
	required := append(requiredComparison(&a, operator.Comparison, &b), requiredComparison(&b, operator.mirrored, &a)...)
	return predicate{func(e *Event) bool {
		x, ok1 := a.number(e)
		y, ok2 := b.number(e)
		if !ok1 || !ok2 {
			return false
		}
		order, ok := x.compare(y)
		return ok && operator.holds(order)
	}, required, len(required) > 0}
}

// glob compares a text with a glob.
func (p *filterParser) glob(text, glob *value) predicate {
	pattern := listing.Pattern{Function: glob.shown}
	if text.text == nil || !glob.isConstant || glob.text == nil || glob.shown == "" {
		p.fail("want a text ~ a glob, as name ~ \"query-*\"")
	}
	if err := pattern.Compile(); err != nil {
		p.fail("%s", err)
	}
	return predicate{match: func(e *Event) bool {
		shown, ok := text.text(e)
		return ok && pattern.Match("", "", shown, "")
	}}
}

// requiredComparison returns the comparison of an argument with a number, none for other values.
func requiredComparison(argument *value, operator arch.Comparison, number *value) []comparison {
	if argument.argument == nil || !number.isConstant {
		return nil
	}
	n, _ := number.number(nil)
	if n.isFloat {
		return nil
	}
	return []comparison{{*argument.argument, operator, n.bits, n.isNegative()}}
}

// Conditions returns what a trampoline of a site can test of a filter. Unless that is all, isWhole, the events that it makes are filtered still.
func (f *Filter) Conditions(s *probe.Site) (all []arch.Condition, isWhole bool) {
	if f == nil {
		return nil, true
	}
	const most = 16 // of which a trampoline has room; the collector tests all
	for _, c := range f.required {
		if len(all) == most {
			break
		}
		i, ok := c.argument.Find(s)
		if !ok {
			continue
		}
		a := &s.Arguments[i]
		inReach := c.isNegative && a.Signed || !c.isNegative && (!a.Signed || int64(c.number) >= 0)
		if isCheap := s.Layout.Arguments[i].CopyAt == 0; isCheap && inReach && a.Format != probe.Text && a.Format != probe.Float && a.Format != probe.Unreadable {
			all = append(all, arch.Condition{Operand: a.Operand, Comparison: c.operator, Number: c.number})
		}
	}
	return all, f.isWhole && len(all) == len(f.required)
}

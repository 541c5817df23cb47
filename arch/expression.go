package arch

// Operands with operators: sources in assembly pass what they have written to the assembler.

import (
	"strconv"
	"strings"
)

// expression reads an operand with operators: a constant, as $8|$4, or memory, as -8+4(%rbp).
func (r *OperandReader) expression(text string) (o Operand, ok bool) {
	o = Operand{Kind: Constant, Base: -1, Index: -1, Scale: 1}
	displacement := text
	if open := strings.LastIndexByte(text, '('); open > 0 && strings.HasSuffix(text, ")") {
		if match := operandSyntax().paren.FindStringSubmatch(text[open:]); match != nil && strings.Contains(text[open:], "%") {
			o.Kind, displacement = InMemory, text[:open]
			isAbsolute := strings.TrimPrefix(match[5], "%") == "rip" && match[6] == ""
			if !isAbsolute && !r.memory(&o, match) {
				return o, false
			}
		}
	}
	e := expressionReader{text: displacement, address: r.Address}
	value := e.binary(0)
	if e.failed || e.text != "" || value.symbols < 0 || value.symbols > 1 {
		return o, false
	}
	o.Value, o.Address = value.number, value.symbols == 1
	if o.Address && !e.isImmediate {
		o.Kind = InMemory
	}
	return o, o.Kind == InMemory || e.isImmediate || !o.Address
}

// expressionReader reads an expression of numbers and symbols, as assemblers have it.
type expressionReader struct {
	text        string // what is left
	address     func(symbol string) (uint64, bool)
	depth       int
	isImmediate bool // a number has a $ or a #
	failed      bool
}

// expressionValue is a number, to which addresses of so many symbols were added.
type expressionValue struct {
	number  uint64
	symbols int
}

// mostNested bounds parentheses in each other.
const mostNested = 64

// binaryOperators are in the order of precedence, the weakest first.
var binaryOperators = []string{"|", "^", "&", "+-", "*/"}

// binary reads an expression of operators from a precedence on.
func (e *expressionReader) binary(precedence int) (left expressionValue) {
	if precedence == len(binaryOperators) {
		return e.unary()
	}
	left = e.binary(precedence + 1)
	for e.text != "" && strings.IndexByte(binaryOperators[precedence], e.text[0]) >= 0 && !e.failed {
		operator := e.text[0]
		e.text = e.text[1:]
		left = e.apply(operator, left, e.binary(precedence+1))
	}
	return left
}

func (e *expressionReader) apply(operator byte, a, b expressionValue) expressionValue {
	switch operator {
	case '+':
		return expressionValue{a.number + b.number, a.symbols + b.symbols}
	case '-':
		return expressionValue{a.number - b.number, a.symbols - b.symbols}
	}
	e.failed = e.failed || a.symbols != 0 || b.symbols != 0 || operator == '/' && b.number == 0
	if e.failed {
		return expressionValue{}
	}
	switch operator {
	case '|':
		a.number |= b.number
	case '^':
		a.number ^= b.number
	case '&':
		a.number &= b.number
	case '*':
		a.number *= b.number
	case '/':
		a.number = uint64(int64(a.number) / int64(b.number))
	}
	return a
}

// unary reads a number, a symbol or an expression in parentheses, with the signs before it.
func (e *expressionReader) unary() (v expressionValue) {
	if e.depth++; e.depth > mostNested || e.text == "" {
		e.failed = true
		return v
	}
	defer func() { e.depth-- }()
	switch c := e.text[0]; c {
	case '-', '+', '~':
		e.text = e.text[1:]
		v = e.unary()
		switch {
		case c == '+':
			return v
		case v.symbols != 0:
			e.failed = true
		case c == '-':
			v.number = -v.number
		default:
			v.number = ^v.number
		}
		return v
	case '$', '#':
		e.isImmediate, e.text = true, e.text[1:]
		return e.unary()
	case '(':
		e.text = e.text[1:]
		v = e.binary(0)
		rest, ok := strings.CutPrefix(e.text, ")")
		e.text, e.failed = rest, e.failed || !ok
		return v
	}
	return e.name()
}

// name reads a number or a symbol.
func (e *expressionReader) name() (v expressionValue) {
	end := strings.IndexFunc(e.text, func(c rune) bool {
		return c != '_' && c != '.' && c != '$' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if end < 0 {
		end = len(e.text)
	}
	word := e.text[:end]
	e.text = e.text[end:]
	number, err := strconv.ParseUint(word, 0, 64)
	if err == nil {
		return expressionValue{number: number}
	}
	address, ok := uint64(0), false
	if word != "" && (word[0] < '0' || word[0] > '9') {
		address, ok = e.address(word)
	}
	e.failed = e.failed || !ok
	return expressionValue{address, 1}
}

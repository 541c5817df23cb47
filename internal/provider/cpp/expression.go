package cpp

import (
	"strconv"
	"strings"

	"sdtconvert/internal/provider/token"
)

// evaluate reads the condition of an #if (C11, 6.10.1).
func (p *Preprocessor) evaluate(pos token.Pos, words *token.Scanner) bool {
	e := &expression{p: p, pos: pos, tokens: p.conditionTokens(words)}
	v := e.conditional()
	if p.err == nil && !e.failed && len(e.tokens) > 0 {
		e.fail("a condition does not end at %q", e.tokens[0].Text)
	}
	return v != 0
}

// conditionTokens expands the macros of a condition, and puts 1 or 0 for `defined'.
func (p *Preprocessor) conditionTokens(words *token.Scanner) (out []token.Token) {
	var line []item
	for {
		t, ok := words.Next()
		if !ok {
			break
		}
		if t.Is("defined") {
			t = p.definedOperator(words, t)
		}
		line = append(line, item{Token: t})
	}
	for _, i := range p.expandAll(line) {
		out = append(out, i.Token)
	}
	return out
}

func (p *Preprocessor) definedOperator(words *token.Scanner, t token.Token) token.Token {
	name, _ := words.Next()
	inside := name.Is("(")
	if inside {
		name, _ = words.Next()
	}
	closed := !inside
	if inside {
		end, _ := words.Next()
		closed = end.Is(")")
	}
	if name.Kind != token.Name || name.Text == "" || !closed {
		p.fail(t.Pos, "", "`defined' takes the name of a macro")
	}
	value := token.Token{Kind: token.Number, Text: "0", Pos: t.Pos, Space: true}
	if p.err == nil && p.defined(name) {
		value.Text = "1"
	}
	return value
}

// expression evaluates tokens as numbers of 64 bits.
type expression struct {
	p      *Preprocessor
	pos    token.Pos
	tokens []token.Token
	depth  int
	skip   int // operators whose result makes no difference, around this one
	failed bool
}

func (e *expression) fail(format string, args ...any) {
	e.failed = true
	e.tokens = nil
	e.p.fail(e.pos, "", format, args...)
}

func (e *expression) take(sign string) bool {
	if len(e.tokens) == 0 || !e.tokens[0].Is(sign) {
		return false
	}
	e.tokens = e.tokens[1:]
	return true
}

func (e *expression) conditional() int64 {
	if e.depth++; e.depth > maxDepth {
		e.fail("a condition has more than %d operators in each other", maxDepth)
	}
	defer func() { e.depth-- }()
	cond := e.binary(0)
	if !e.take("?") {
		return cond
	}
	yes := e.conditional()
	if !e.take(":") {
		e.fail("a condition has ? without :")
	}
	no := e.conditional()
	if cond != 0 {
		return yes
	}
	return no
}

// levels are the binary operators, those that bind least first.
var levels = [][]string{
	{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"},
}

func (e *expression) binary(level int) int64 {
	if level == len(levels) {
		return e.unary()
	}
	v := e.binary(level + 1)
	for {
		op := ""
		for _, sign := range levels[level] {
			if e.take(sign) {
				op = sign
				break
			}
		}
		if op == "" {
			return v
		}
		idle := op == "&&" && v == 0 || op == "||" && v != 0
		if idle {
			e.skip++
		}
		v = e.apply(op, v, e.binary(level+1))
		if idle {
			e.skip--
		}
	}
}

func (e *expression) apply(op string, a, b int64) int64 {
	truth := func(v bool) int64 {
		if v {
			return 1
		}
		return 0
	}
	switch op {
	case "||":
		return truth(a != 0 || b != 0)
	case "&&":
		return truth(a != 0 && b != 0)
	case "|":
		return a | b
	case "^":
		return a ^ b
	case "&":
		return a & b
	case "==":
		return truth(a == b)
	case "!=":
		return truth(a != b)
	case "<=":
		return truth(a <= b)
	case ">=":
		return truth(a >= b)
	case "<":
		return truth(a < b)
	case ">":
		return truth(a > b)
	case "<<":
		return a << (uint64(b) & 63)
	case ">>":
		return a >> (uint64(b) & 63)
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}
	switch {
	case b == 0 && e.skip > 0:
		return 0
	case b == 0:
		e.fail("a condition divides by 0")
		return 0
	case op == "/":
		return a / b
	}
	return a % b
}

func (e *expression) unary() int64 {
	if e.depth++; e.depth > maxDepth {
		e.fail("a condition has more than %d operators in each other", maxDepth)
	}
	defer func() { e.depth-- }()
	switch {
	case len(e.tokens) == 0:
		e.fail("a condition ends where a number is missing")
		return 0
	case e.take("!"):
		if e.unary() == 0 {
			return 1
		}
		return 0
	case e.take("-"):
		return -e.unary()
	case e.take("+"):
		return e.unary()
	case e.take("~"):
		return ^e.unary()
	case e.take("("):
		v := e.conditional()
		if !e.take(")") {
			e.fail("a condition has ( without )")
		}
		return v
	}
	t := e.tokens[0]
	e.tokens = e.tokens[1:]
	return e.value(t)
}

// value is a number, a character, or a name that is no macro.
func (e *expression) value(t token.Token) int64 {
	switch t.Kind {
	case token.Number:
		v, err := strconv.ParseUint(strings.TrimRight(t.Text, "uUlL"), 0, 64)
		if err == nil {
			return int64(v)
		}
	case token.Name:
		if reserved(t.Text) {
			e.p.defined(t)
		}
		if len(e.tokens) > 0 && e.tokens[0].Is("(") {
			e.p.needsCompiler(t.Pos, "what %s( ) is in a condition only a compiler knows", t.Text)
		}
		return 0
	case token.Text:
		if len(t.Text) == 3 && t.Text[0] == '\'' {
			return int64(t.Text[1])
		}
	}
	e.fail("a condition has %q where a number is missing", t.Text)
	return 0
}

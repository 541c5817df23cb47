package cpp

import (
	"slices"
	"strconv"
	"strings"

	"sdtconvert/internal/provider/token"
)

// macro is a macro. That of a function has parameters, or an empty list of them that is not
// nil.
type macro struct {
	name     string
	params   []string
	variadic bool // the last parameter takes all arguments that are left
	body     []token.Token
}

// origin lists the macros that a token came of, which it does not become again.
type origin struct {
	name  string
	depth int
	next  *origin
}

func (o *origin) has(name string) bool {
	for ; o != nil; o = o.next {
		if o.name == name {
			return true
		}
	}
	return false
}

// define reads what follows #define.
func (p *Preprocessor) define(words *token.Scanner) {
	pos := words.Pos()
	t, ok := words.Next()
	if !ok || t.Kind != token.Name || t.Text == "defined" {
		p.fail(pos, "", "#define takes the name of a macro")
		return
	}
	m := &macro{name: t.Text}
	first := true
	for {
		t, ok := words.Next()
		if !ok {
			break
		}
		if first && t.Is("(") && !t.Space {
			if !m.parameters(words) {
				p.fail(t.Pos, "", "the parameters of the macro %s are no list of names", m.name)
				return
			}
		} else {
			m.body = append(m.body, t)
		}
		first = false
	}
	if len(m.body) > 0 && (m.body[0].Is("##") || m.body[len(m.body)-1].Is("##")) {
		p.fail(pos, "", "## joins two tokens, and stands at an end of the macro %s", m.name)
	}
	p.macros[m.name] = m
}

// parameters reads a list up to its parenthesis.
func (m *macro) parameters(words *token.Scanner) bool {
	m.params = []string{}
	for {
		t, ok := words.Next()
		switch {
		case !ok:
			return false
		case t.Is(")") && len(m.params) == 0:
			return true
		case t.Is("..."):
			m.variadic = true
			m.params = append(m.params, "__VA_ARGS__")
		case t.Kind == token.Name && !slices.Contains(m.params, t.Text):
			m.params = append(m.params, t.Text)
		default:
			return false
		}
		if t, ok = words.Next(); !ok {
			return false
		}
		if t.Is(")") {
			return true
		}
		if !t.Is(",") || m.variadic {
			return false
		}
	}
}

// expand replaces a name by what its macro stands for, which is read next, and reports
// whether it has.
func (p *Preprocessor) expand(i item) bool {
	m := p.macros[i.Text]
	if m == nil || i.from.has(i.Text) {
		return false
	}
	var args [][]item
	if m.params != nil {
		open, ok := p.raw()
		if !ok {
			return false
		}
		if !open.Is("(") {
			p.unread(open)
			return false
		}
		if args, ok = p.arguments(m, i.Pos); !ok {
			return true
		}
	}
	from := &origin{name: m.name, depth: 1, next: i.from}
	if i.from != nil {
		from.depth += i.from.depth
	}
	if from.depth > maxDepth {
		p.fail(i.Pos, "", "macros are in each other, more than %d deep", maxDepth)
		return true
	}
	body := p.substitute(m, args, i, from)
	if p.left -= len(body) + 1; p.left < 0 {
		p.fail(i.Pos, "", "macros make more than %d tokens", maxExpanded)
		return true
	}
	for _, t := range slices.Backward(body) {
		p.unread(t)
	}
	return true
}

// arguments reads those of a macro, up to the parenthesis behind them.
func (p *Preprocessor) arguments(m *macro, pos token.Pos) (args [][]item, ok bool) {
	depth := 0
	args = [][]item{nil}
	for {
		i, ok := p.raw()
		last := len(args) - 1
		switch {
		case !ok || i.Kind == token.Directive:
			p.fail(pos, "close them with )", "the arguments of the macro %s do not end", m.name)
			return nil, false
		case depth == 0 && i.Is(")"):
			if len(args) == 1 && len(args[0]) == 0 && len(m.params) == 0 {
				args = nil
			}
			if m.variadic && len(args) == len(m.params)-1 {
				args = append(args, nil)
			}
			if len(args) != len(m.params) {
				p.fail(pos, "", "the macro %s takes %d arguments, and has %d", m.name, len(m.params), len(args))
				return nil, false
			}
			return args, true
		case depth == 0 && i.Is(",") && !(m.variadic && len(args) == len(m.params)):
			args = append(args, nil)
			continue
		case i.Is("("):
			depth++
		case i.Is(")"):
			depth--
		}
		if p.left--; p.left < 0 {
			p.fail(pos, "", "macros take more than %d tokens", maxExpanded)
			return nil, false
		}
		args[last] = append(args[last], i)
	}
}

// substitute makes what a macro stands for. All of it stands where the macro was named.
func (p *Preprocessor) substitute(m *macro, args [][]item, at item, from *origin) (out []item) {
	paste, empty := false, true // empty: nothing stands on the left of the next ##
	for n := 0; n < len(m.body); n++ {
		t := m.body[n]
		if t.Is("##") {
			paste = !empty
			continue
		}
		part, ofArgument, last := p.piece(m, args, n, paste)
		n = last
		for k, i := range part {
			i.Pos = at.Pos
			if k == 0 {
				i.Space = t.Space
			}
			if !ofArgument {
				i.from = from
			}
			if paste && k == 0 {
				i = p.paste(&out, i, from)
			}
			out = append(out, i)
		}
		empty = len(part) == 0 && !paste
		paste = false
		if p.err != nil || len(out) > p.left {
			break
		}
	}
	return out
}

// piece is what the token n of a macro's body stands for: an argument, the text of one, or
// itself. It says which token it ends with. What ## joins is not expanded by itself.
func (p *Preprocessor) piece(m *macro, args [][]item, n int, pasted bool) (part []item, ofArgument bool, last int) {
	t := m.body[n]
	next := token.Token{}
	if n+1 < len(m.body) {
		next = m.body[n+1]
	}
	if m.params != nil && t.Is("#") && slices.Contains(m.params, next.Text) {
		return []item{{Token: p.quote(args[slices.Index(m.params, next.Text)])}}, false, n + 1
	}
	param := slices.Index(m.params, t.Text)
	if param < 0 || t.Kind != token.Name {
		return []item{{Token: t}}, false, n
	}
	if pasted || next.Is("##") {
		return args[param], true, n
	}
	return p.expandAll(args[param]), true, n
}

// paste joins a token with the last one of a list, from which it takes that.
func (p *Preprocessor) paste(list *[]item, i item, from *origin) item {
	last := len(*list) - 1
	text := (*list)[last].Text + i.Text
	p.left -= len(text)
	*list = (*list)[:last]
	words := token.Line(i.Pos, text)
	t, ok := words.Next()
	if _, more := words.Next(); !ok || more {
		p.fail(i.Pos, "", "## makes no token of %q", text)
	}
	t.Pos = i.Pos
	return item{t, from}
}

// expandAll expands an argument by itself.
func (p *Preprocessor) expandAll(arg []item) (out []item) {
	if p.depth++; p.depth > maxDepth && len(arg) > 0 {
		p.fail(arg[0].Pos, "", "macros are in the arguments of macros, more than %d deep", maxDepth)
	}
	inner := &Preprocessor{macros: p.macros, left: p.left, depth: p.depth, err: p.err}
	inner.pending = slices.Clone(arg)
	slices.Reverse(inner.pending)
	for {
		i, ok := inner.expanded()
		if !ok {
			break
		}
		out = append(out, i)
	}
	p.depth--
	p.left, p.err = inner.left, inner.err
	return out
}

// quote is what # makes of an argument.
func (p *Preprocessor) quote(arg []item) token.Token {
	var b strings.Builder
	for i := range arg {
		if i > 0 && arg[i].Space {
			b.WriteByte(' ')
		}
		b.WriteString(arg[i].Text)
		if b.Len() > p.left {
			break
		}
	}
	p.left -= b.Len()
	return token.Token{Kind: token.Text, Text: strconv.Quote(b.String())}
}

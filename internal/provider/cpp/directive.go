package cpp

import (
	"strings"

	"sdtconvert/internal/provider/token"
)

// group are the lines between a condition and its #endif.
type group struct {
	pos    token.Pos
	active bool // the lines that follow count
	done   bool // some have counted, or none may
	last   bool // #else was there
}

// active reports whether lines count.
func (s *source) active() bool { return len(s.groups) == 0 || s.groups[len(s.groups)-1].active }

// directive obeys a directive, or returns it if it is a pragma for whoever reads the tokens.
func (p *Preprocessor) directive(s *source, t token.Token) (pragma token.Token, ok bool) {
	name, rest := cutWord(t.Text)
	at := t.Pos
	at.Column += len("#") + len(t.Text) - len(rest)
	words := token.Line(at, rest)
	if p.condition(s, t.Pos, name, words) || !s.active() {
		return t, false
	}
	switch name {
	case "":
	case "define":
		p.define(words)
	case "undef":
		if name, ok := words.Next(); ok && name.Kind == token.Name {
			delete(p.macros, name.Text)
		} else {
			p.fail(t.Pos, "", "#undef takes the name of a macro")
		}
	case "include":
		p.includeLine(t.Pos, rest)
	case "pragma":
		if strings.TrimSpace(rest) != "once" {
			return t, true
		}
		p.once[t.Pos.File] = true
	case "error":
		p.fail(t.Pos, "", "#error%s", rest)
	case "warning", "ident":
	default:
		if file, line, ok := token.Marker(t.Text); ok {
			s.Rename(file, line)
			return t, false
		}
		p.fail(t.Pos, "write a remark as /* ... */", "#%s is no directive of C's preprocessor", name)
	}
	return t, false
}

// cutWord takes the name of a directive.
func cutWord(text string) (name, rest string) {
	text = strings.TrimLeft(text, " \t\v\f\r")
	end := 0
	for end < len(text) && (token.IsName(text[end]) || token.IsDigit(text[end])) {
		end++
	}
	return text[:end], text[end:]
}

// condition obeys the directives of conditions, and reports whether this is one.
func (p *Preprocessor) condition(s *source, pos token.Pos, name string, words *token.Scanner) bool {
	switch name {
	case "if", "ifdef", "ifndef":
		g := group{pos: pos, done: true}
		if s.active() {
			g.active = p.holds(pos, name, words)
			g.done = g.active
		}
		if len(s.groups) > maxDepth {
			p.fail(pos, "", "conditions are in each other, more than %d deep", maxDepth)
		}
		s.groups = append(s.groups, g)
		return true
	case "elif", "elifdef", "elifndef", "else", "endif":
	default:
		return false
	}
	if len(s.groups) == 0 {
		p.fail(pos, "", "#%s has no #if", name)
		return true
	}
	g := &s.groups[len(s.groups)-1]
	switch {
	case name == "endif":
		s.groups = s.groups[:len(s.groups)-1]
	case g.last:
		p.fail(pos, "", "#%s behind #else", name)
	case name == "else":
		g.active, g.done, g.last = !g.done, true, true
	default:
		g.active = !g.done && p.holds(pos, name[len("el"):], words)
		g.done = g.done || g.active
	}
	return true
}

// holds evaluates a condition.
func (p *Preprocessor) holds(pos token.Pos, name string, words *token.Scanner) bool {
	if name == "if" {
		return p.evaluate(pos, words)
	}
	t, ok := words.Next()
	if !ok || t.Kind != token.Name {
		p.fail(pos, "", "#%s takes the name of a macro", name)
		return false
	}
	return p.defined(t) == (name == "ifdef")
}

// includeLine reads the rest of an #include.
func (p *Preprocessor) includeLine(pos token.Pos, rest string) {
	rest = strings.TrimSpace(rest)
	for _, quotes := range []string{`""`, "<>"} {
		if len(rest) < 3 || rest[0] != quotes[0] {
			continue
		}
		if name, _, ok := strings.Cut(rest[1:], quotes[1:]); ok && name != "" {
			p.include(pos, name, quotes == "<>")
			return
		}
	}
	p.needsCompiler(pos, "what #include %s names is not known here", rest)
}

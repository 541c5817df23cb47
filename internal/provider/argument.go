package provider

import (
	"slices"
	"strings"
)

// maxArguments is how many arguments a list may have before anybody counts: DTrace's limit.
const maxArguments = 255

// maxWords is how many tokens an argument may have: its type is put together of them.
const maxWords = 1000

// arguments reads a list in parentheses.
func (p *parser) arguments() (args []Arg, ok bool) {
	open := p.next()
	if p.take(")") {
		return nil, true
	}
	for {
		words, ok := p.words(open)
		if !ok {
			return nil, false
		}
		if len(words) == 0 {
			p.fault(p.peek(0).Pos, "", "an argument is missing before %s", p.found())
			return nil, false
		}
		end := p.next()
		if end.Text == ")" && args == nil && len(words) == 1 && words[0].Is("void") {
			return nil, true
		}
		arg, ok := p.argument(words)
		if !ok {
			return nil, false
		}
		if args = append(args, arg); len(args) > maxArguments {
			p.fault(words[0].Pos, "", "this is argument %d, and there may be %d", len(args), maxArguments)
			return nil, false
		}
		if end.Text == ")" {
			return args, true
		}
	}
}

// words takes the tokens of an argument, up to the comma or parenthesis behind it.
func (p *parser) words(open Token) (words []Token, ok bool) {
	depth := 0
	for {
		t := p.peek(0)
		switch {
		case !p.more() || t.Is(";") || t.Is("{") || t.Is("}"):
			p.fault(open.Pos, "close it with )", "this list of arguments ends at %s", p.found())
			return nil, false
		case depth == 0 && (t.Is(",") || t.Is(")")):
			return words, true
		case t.Is("(") || t.Is("["):
			depth++
		case t.Is(")") || t.Is("]"):
			depth--
		}
		if words = append(words, p.next()); len(words) > maxWords {
			p.fault(words[0].Pos, "", "this argument has more than %d words", maxWords)
			return nil, false
		}
	}
}

// The words of C's types. After one of the first a name is that of the argument; a tag
// follows one of the second; the third say nothing of what a name is.
var (
	basicWords = []string{
		"void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "_Bool", "_Complex",
		"__signed__", "__int128", "string", "userland",
	}
	tagWords   = []string{"struct", "union", "enum"}
	qualifiers = []string{"const", "volatile", "restrict", "__restrict", "__const", "__volatile__", "__extension__", "register"}
)

// argument divides a declaration into its type and its name.
func (p *parser) argument(words []Token) (Arg, bool) {
	for i := range words {
		t := &words[i]
		inBrackets := t.Kind == NumberToken || t.Is("+") || t.Is("-")
		if t.Kind != NameToken && !inBrackets && !strings.Contains("*()[],", t.Text) {
			p.fault(t.Pos, "", "%q is not part of an argument's type", t.Text)
			return Arg{}, false
		}
	}
	at := nameOf(words)
	a := Arg{}
	var typ []Token
	for i := range words {
		if i == at {
			a.Name = words[i].Text
		} else {
			typ = append(typ, words[i])
		}
	}
	if open := slices.IndexFunc(typ, func(t Token) bool { return t.Is("[") }); open >= 0 && len(typ) == open+3 && typ[open+1].Kind == NameToken {
		a.Length = typ[open+1].Text
	}
	typ = decay(typ)
	if !hasType(typ) {
		p.fault(words[0].Pos, "", "an argument has a type, and here is %s", spell(words))
		return Arg{}, false
	}
	if len(typ) == 1 && typ[0].Is("void") {
		p.fault(words[0].Pos, "", "void is the type of no argument")
		return Arg{}, false
	}
	a.Type = spell(typ)
	return a, true
}

// nameOf finds the name of an argument, -1 where there is none: the last name in the
// innermost declarator that stands behind a type. Undeclared types
// are names as well, and so is `errno'.
func nameOf(words []Token) int {
	typed, tag, at := false, false, -1
	for i := range words {
		t := &words[i]
		switch {
		case t.Is("["):
			return at
		case t.Is("(") && i > 0 && i+1 < len(words) && words[i+1].Is("*"):
			return pointerName(words, i+1)
		case t.Is("("):
			return at
		case t.Kind != NameToken:
		case slices.Contains(qualifiers, t.Text):
		case tag:
			typed, tag = true, false
		case slices.Contains(tagWords, t.Text):
			tag = true
		case typed && !slices.Contains(basicWords, t.Text):
			at = i
		default:
			typed = true
		}
	}
	return at
}

// pointerName finds the name in a pointer to a function or to an array, (*name)(...).
func pointerName(words []Token, i int) int {
	for ; i < len(words) && !words[i].Is(")"); i++ {
		if words[i].Kind == NameToken && !slices.Contains(qualifiers, words[i].Text) {
			return i
		}
	}
	return -1
}

// decay makes a pointer of an array, as C does of a parameter.
func decay(words []Token) []Token {
	at := slices.IndexFunc(words, func(t Token) bool { return t.Is("[") || t.Is("(") })
	if at < 0 || words[at].Is("(") {
		return words
	}
	return append(slices.Clone(words[:at]), Token{Kind: SignToken, Text: "*", Space: true})
}

// hasType reports whether there is anything but qualifiers and signs.
func hasType(words []Token) bool {
	return slices.ContainsFunc(words, func(t Token) bool { return t.Kind == NameToken && !slices.Contains(qualifiers, t.Text) })
}

// spell writes a type as C people do: a space between words and before the first star.
func spell(words []Token) string {
	var b strings.Builder
	last := ""
	for i := range words {
		t := &words[i]
		word := t.Kind == NameToken || t.Kind == NumberToken
		afterWord := last != "" && (startsName(last[0]) || isDigit(last[0]))
		if word && last != "" && last != "(" && last != "[" && last != "*" || t.Is("*") && afterWord || t.Is("(") && afterWord {
			b.WriteByte(' ')
		}
		b.WriteString(t.Text)
		last = t.Text
	}
	return b.String()
}

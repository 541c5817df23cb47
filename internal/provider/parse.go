package provider

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// File is what a file declares.
type File struct {
	Providers []*Provider
	Warnings  []error
}

// Parse reads the tokens of a file. Conditions among them have not been evaluated if
// there are any: lines that begin with # are remarks then. An error is every fault that
// was found, joined (interface{ Unwrap() []error }).
func Parse(src *Scanner) (*File, error) {
	p := &parser{src: src, file: &File{}, byName: map[string]*Provider{}}
	for p.more() {
		p.external()
	}
	for _, a := range p.attributes {
		if pr := p.byName[a.provider]; pr != nil {
			pr.Attributes[a.index] = a.stability
		} else {
			p.warn(a.pos, "", "there are attributes of a provider %s, which is not declared here", a.provider)
		}
	}
	if p.faults != nil {
		return nil, errors.Join(p.faults...)
	}
	return p.file, nil
}

// maxFaults is how many faults of a file are told.
const maxFaults = 20

type parser struct {
	src        *Scanner
	ahead      []Token
	last       Pos // of the last token that was taken
	file       *File
	byName     map[string]*Provider
	faults     []error
	groups     int // conditions around this place
	warned     bool
	attributes []attribute
}

func (p *parser) fault(pos Pos, cure, format string, args ...any) {
	if len(p.faults) < maxFaults {
		p.faults = append(p.faults, &Error{Pos: pos, What: fmt.Sprintf(format, args...), Cure: cure})
	}
}

func (p *parser) warn(pos Pos, cure, format string, args ...any) {
	if len(p.file.Warnings) < maxFaults {
		p.file.Warnings = append(p.file.Warnings, &Error{Pos: pos, What: fmt.Sprintf(format, args...), Cure: cure})
	}
}

// peek returns the token n places ahead; one of no kind stands for the end.
func (p *parser) peek(n int) *Token {
	for len(p.ahead) <= n {
		t, ok := p.src.Next()
		switch {
		case !ok:
			p.ahead = append(p.ahead, Token{Kind: BadToken, Pos: p.last})
		case t.Kind == DirectiveToken:
			p.directive(t)
		case t.Kind == BadToken:
			p.fault(t.Pos, "", "%s", t.Text)
		default:
			p.ahead = append(p.ahead, t)
		}
	}
	return &p.ahead[n]
}

func (p *parser) more() bool { return p.peek(0).Kind != BadToken }

func (p *parser) next() Token {
	t := *p.peek(0)
	p.ahead = slices.Delete(p.ahead, 0, 1)
	p.last = t.Pos
	return t
}

// take takes a sign or a name if it is next.
func (p *parser) take(text string) bool {
	if !p.peek(0).Is(text) {
		return false
	}
	p.next()
	return true
}

// found describes what stands where something else was wanted.
func (p *parser) found() string { return p.describe(0) }

// describe shows the token n places ahead in a message.
func (p *parser) describe(n int) string {
	if t := p.peek(n); t.Kind != BadToken {
		return fmt.Sprintf("%q", t.Text)
	}
	return "the end of the file"
}

// atProvider reports whether a provider begins here.
func (p *parser) atProvider() bool {
	return p.peek(0).Is("provider") && p.peek(1).Kind == NameToken && p.peek(2).Is("{")
}

// atProbe reports whether a probe is declared here.
func (p *parser) atProbe() bool {
	return p.peek(0).Is("probe") && p.peek(1).Kind == NameToken && p.peek(2).Is("(")
}

// external reads a provider, or passes over one declaration or clause.
func (p *parser) external() {
	if p.atProvider() {
		p.provider()
		return
	}
	if t := p.peek(0); t.Is("provider") {
		p.fault(t.Pos, "it is: provider NAME { ... };", "a provider begins here, and then comes %s", p.describe(1))
	}
	b := brackets{declaration: p.declares()}
	for p.more() {
		if len(b.open) == 0 && p.atProvider() {
			p.warn(p.last, "", "what stands before provider %s has no ; at its end", p.peek(1).Text)
			return
		}
		switch {
		case p.atProvider():
			p.fault(p.peek(0).Pos, "close it with }", "provider %s stands inside of what begins at %v", p.peek(1).Text, b.open[0].Pos)
		case p.atProbe():
			p.fault(p.peek(0).Pos, "put it into provider NAME { ... };", "probe %s is in no provider", p.peek(1).Text)
		}
		t := p.next()
		over, wrong := b.add(t)
		if wrong != "" {
			p.fault(t.Pos, "", "%s", wrong)
		}
		if over {
			return
		}
	}
	if len(b.open) > 0 {
		p.fault(b.open[0].Pos, "", "this %q is not closed", b.open[0].Text)
	}
}

// brackets follow a declaration to its end.
type brackets struct {
	declaration bool // it goes on behind a brace, unless that of a function
	function    bool // the outermost brace is that of a function
	before      string
	open        []Token
}

// add takes in a token, and reports whether all is over with it.
func (b *brackets) add(t Token) (over bool, wrong string) {
	before := b.before
	b.before = t.Text
	switch {
	case t.Is("(") || t.Is("[") || t.Is("{"):
		if len(b.open) == 0 {
			b.function = t.Text == "{" && before == ")"
		}
		b.open = append(b.open, t)
	case t.Is(")") || t.Is("]") || t.Is("}"):
		if len(b.open) == 0 {
			return true, fmt.Sprintf("%q closes nothing", t.Text)
		}
		last := b.open[len(b.open)-1]
		if closing(last.Text) != t.Text {
			return true, fmt.Sprintf("%q does not close the %q of %v", t.Text, last.Text, last.Pos)
		}
		b.open = b.open[:len(b.open)-1]
		return len(b.open) == 0 && t.Text == "}" && (b.function || !b.declaration), ""
	case t.Is(";"):
		return len(b.open) == 0, ""
	}
	return false, ""
}

// closing returns the bracket that closes one.
func closing(open string) string { return map[string]string{"(": ")", "[": "]", "{": "}"}[open] }

// declares reports whether a declaration begins here that goes on behind a brace, as that of
// a structure does. A clause of D is over there.
func (p *parser) declares() bool {
	t := p.peek(0)
	return t.Is("typedef") || t.Is("struct") || t.Is("union") || t.Is("enum")
}

// provider reads a provider.
func (p *parser) provider() {
	p.next()
	name := p.next()
	brace := p.next()
	pr := p.byName[name.Text]
	if pr == nil {
		pr = &Provider{Name: name.Text, Pos: name.Pos, Attributes: Attributes{unstated, unstated, unstated, unstated, unstated}}
		p.byName[name.Text] = pr
		p.file.Providers = append(p.file.Providers, pr)
	}
	for !p.take("}") {
		if !p.more() {
			p.fault(brace.Pos, "close it with };", "provider %s does not end", name.Text)
			return
		}
		if p.atProvider() {
			p.fault(p.peek(0).Pos, "close the one before with };", "provider %s stands inside of provider %s", p.peek(1).Text, name.Text)
			return
		}
		if p.take(";") {
			continue
		}
		if probe := p.probe(); probe != nil {
			pr.Probes = append(pr.Probes, probe)
		} else {
			p.recover()
		}
	}
	if !p.take(";") {
		p.warn(p.last, "write };", "provider %s has no ; at its end, which DTrace refuses", name.Text)
	}
}

// recover goes behind the next semicolon, or to what cannot be in the declaration of a probe.
func (p *parser) recover() {
	for p.more() && !p.peek(0).Is("}") && !p.peek(0).Is("probe") && !p.atProvider() {
		if p.take(";") {
			return
		}
		p.next()
	}
}

// probe reads the declaration of a probe, or returns nil after an error.
func (p *parser) probe() *Probe {
	if !p.peek(0).Is("probe") {
		p.fault(p.peek(0).Pos, "", "a provider holds probes, probe NAME(TYPE, ...);, and here is %s", p.found())
		if p.more() {
			p.next()
		}
		return nil
	}
	first := p.next()
	if p.groups > 0 && !p.warned {
		p.warned = true
		p.warn(first.Pos, "give -C", "a probe stands between #if and #endif, which count as remarks without a preprocessor")
	}
	if p.peek(0).Kind != NameToken {
		p.fault(p.peek(0).Pos, "", "a probe has a name, and here is %s", p.found())
		return nil
	}
	name := p.next()
	switch t := p.peek(0); {
	case t.Is("-"):
		p.fault(t.Pos, "write __ for a dash", "the name of a probe is one of C")
		return nil
	case t.Is(":"):
		p.fault(t.Pos, "write probe "+name.Text+"(...);", "probes for functions of others are not supported")
		return nil
	case !t.Is("("):
		p.fault(t.Pos, "write ()", "probe %s has no list of arguments: here is %s", name.Text, p.found())
		return nil
	}
	probe := &Probe{Name: name.Text, Pos: name.Pos}
	var ok bool
	if probe.Args, ok = p.arguments(); !ok {
		return nil
	}
	if p.take(":") {
		if !p.peek(0).Is("(") {
			p.fault(p.peek(0).Pos, "", "behind : comes the list of translated arguments, and here is %s", p.found())
			return nil
		}
		if probe.Translated, ok = p.arguments(); !ok {
			return nil
		}
		if probe.Translated == nil {
			probe.Translated = []Arg{}
		}
	}
	if !p.take(";") {
		p.fault(p.peek(0).Pos, "write ;", "the declaration of probe %s does not end: here is %s", name.Text, p.found())
		return nil
	}
	return probe
}

// maxSize is the size of the largest file, in bytes. Its tokens take some hundred times that.
const maxSize = 4 << 20

// Read reads a file. With preprocess, which returns what a preprocessor makes of the file,
// it parses that instead.
func Read(path string, preprocess func(path string) (text string, err error)) (*File, error) {
	text, err := readFile(path)
	if err == nil && preprocess != nil {
		text, err = preprocess(path)
	}
	if err != nil {
		return nil, err
	}
	return Parse(NewScanner(path, text))
}

// readFile reads a file that is not too large.
func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(text) > maxSize {
		err = fmt.Errorf("%s: is too large: more than %d bytes", path, maxSize)
	}
	return string(text), err
}

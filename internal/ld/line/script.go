package line

import (
	"slices"
	"strings"
)

// Span is a range of bytes of a text.
type Span struct{ Start, End int }

// Name is a word of a script, without the quotes that may be around it.
type Name struct {
	Span   // with quotes
	Text   string
	Quoted bool
}

// Include is another script that one includes. What that holds goes on where this
// stands.
type Include struct {
	Name
	Within Context
}

// Pattern chooses files, some sections of which go to one place.
type Pattern struct {
	Name
	// Excludes says that the files are left out: it is in the list of EXCLUDE_FILE.
	Excludes bool
	// Sections are the names of sections that the pattern stands before.
	Sections []SectionName
}

// SectionName is a name of sections behind a file pattern.
type SectionName struct {
	At int // where the name begins
	// List is where the list of an EXCLUDE_FILE before the name ends, or -1.
	List int
	// Follows says that nothing but white space is between this name and another: then
	// lld has the EXCLUDE_FILE of that for both.
	Follows bool
	Sorted  bool // it is in the parentheses of SORT or the like
}

// Script is what a linker script says of files.
type Script struct {
	Text        string
	Inputs      []Name // that INPUT, GROUP and STARTUP name, with -l
	Includes    []Include
	Directories []string // of SEARCH_DIR
	Formats     []string // of OUTPUT_FORMAT
	Foreign     string   // the format of a TARGET that is no ELF, or ""
	Patterns    []Pattern
	Words       []string // everything else that is not understood, each once
}

// Context is a part of a script that has a grammar of its own.
type Context uint8

const (
	TopLevel Context = iota // of a script
	Sections                // within SECTIONS
	Output                  // within an output section
)

// ParseScript reads a linker script, of GNU ld or as lld and gold have it, that stands
// in a context, as a linker does. Nothing is wrong with a script here: the linker is the
// one to say so.
func (d Dialect) ParseScript(text string, within Context) *Script {
	p := scriptParser{script: &Script{Text: text}, seen: map[string]bool{}}
	p.text, p.dialect = text, d
	p.wild = within != TopLevel
	p.next()
	switch within {
	case Sections:
		p.sections()
	case Output:
		p.output(0)
	}
	p.wild = false
	p.topLevel()
	return p.script
}

type scriptParser struct {
	lexer
	word   Name // that is next, with no text at the end
	script *Script
	seen   map[string]bool // words of the script's Words
}

// next goes on to the next word and returns the one before.
func (p *scriptParser) next() Name {
	was := p.word
	p.word = p.lexer.next()
	return was
}

// is reports whether a word is next.
func (p *scriptParser) is(words ...string) bool {
	return !p.word.Quoted && slices.Contains(words, p.word.Text)
}

func (p *scriptParser) atEnd() bool { return p.word.Text == "" && !p.word.Quoted }

// take goes past a word if it is next.
func (p *scriptParser) take(word string) bool {
	if !p.is(word) {
		return false
	}
	p.next()
	return true
}

// unknown keeps a word that is not understood.
func (p *scriptParser) unknown(word Name) {
	if !p.seen[word.Text] {
		p.seen[word.Text] = true
		p.script.Words = append(p.script.Words, word.Text)
	}
}

func (p *scriptParser) topLevel() {
	for !p.atEnd() {
		word := p.next()
		if word.Quoted {
			p.unknown(word)
			continue
		}
		switch word.Text {
		case "INPUT", "GROUP", "STARTUP":
			if p.take("(") {
				p.inputs()
			}
		case "INCLUDE":
			p.include(TopLevel)
		case "SEARCH_DIR":
			if p.take("(") && !p.atEnd() && !p.is(")") {
				p.script.Directories = append(p.script.Directories, p.next().Text)
				p.take(")")
			}
		case "TARGET":
			if p.take("(") && isForeign(p.word.Text) {
				p.script.Foreign = p.word.Text
			}
		case "OUTPUT_FORMAT":
			if p.take("(") {
				p.formats()
			}
		case "SECTIONS", "OVERWRITE_SECTIONS":
			if p.take("{") {
				p.wild = true
				p.sections()
				p.wild = false
			}
		case "VERSION", "MEMORY", "PHDRS":
			if p.take("{") {
				p.skip("{", "}")
			}
		default:
			p.unknown(word)
		}
	}
}

func (p *scriptParser) include(within Context) {
	if !p.atEnd() {
		p.script.Includes = append(p.script.Includes, Include{p.next(), within})
	}
}

// inputs takes the rest of a list of inputs.
func (p *scriptParser) inputs() {
	for depth := 1; depth > 0 && !p.atEnd(); {
		word := p.next()
		switch {
		case word.Quoted:
			p.script.Inputs = append(p.script.Inputs, word)
		case word.Text == "(":
			depth++
		case word.Text == ")":
			depth--
		case word.Text == "," || word.Text == "AS_NEEDED":
		default:
			p.script.Inputs = append(p.script.Inputs, word)
		}
	}
}

// formats takes the rest of a list of formats.
func (p *scriptParser) formats() {
	for !p.atEnd() && !p.take(")") {
		if name := strings.Trim(p.next().Text, ","); name != "" {
			p.script.Formats = append(p.script.Formats, name)
		}
	}
}

// skip goes past what closes a bracket that is open.
func (p *scriptParser) skip(open, closing string) {
	for depth := 1; depth > 0 && !p.atEnd(); p.next() {
		switch {
		case p.is(open):
			depth++
		case p.is(closing):
			depth--
		}
	}
}

// sections takes what is in SECTIONS: before the brace that opens an output section
// there is nothing of files.
func (p *scriptParser) sections() {
	for !p.atEnd() {
		switch word := p.next(); {
		case word.Quoted:
		case word.Text == "}":
			return
		case word.Text == "(":
			p.skip("(", ")")
		case word.Text == "{":
			p.output(0)
		case word.Text == "INCLUDE":
			p.include(Sections)
		}
	}
}

// lexer takes a text apart into words.
type lexer struct {
	text    string
	at      int
	dialect Dialect
	wild    bool // in SECTIONS
}

// single are the characters that are words.
const single = "(){},;"

// next returns the next word, or an empty one at the end. A bracket of any kind is a word,
// but those of a pattern like [ab].o.
func (l *lexer) next() Name {
	l.blank()
	start, rest := l.at, l.text[l.at:]
	if rest == "" {
		return Name{Span: Span{start, start}}
	}
	if rest[0] == '"' {
		word, _, closed := strings.Cut(rest[1:], `"`)
		l.at += 1 + len(word)
		if closed {
			l.at++
		}
		return Name{Span{start, l.at}, word, true}
	}
	n := 1
	if strings.IndexByte(single, rest[0]) < 0 || rest[0] == ',' && l.wild && l.dialect == GNU {
		if n = strings.IndexAny(rest[1:], l.ends()) + 1; n == 0 {
			n = len(rest)
		}
	}
	l.at += n
	return Name{Span{start, l.at}, rest[:n], false}
}

// ends returns the characters that end a word. A comma is part of a name to GNU ld and
// gold, but for its first character; to GNU ld, of a pattern even that.
func (l *lexer) ends() string {
	if l.dialect == GNU || l.dialect == Gold {
		return space + `(){};"`
	}
	return space + single + `"`
}

// blank goes past white space and comments. Those that begin with # are lld's; to the
// others such a word is an error.
func (l *lexer) blank() {
	for {
		rest := strings.TrimLeft(l.text[l.at:], space)
		l.at = len(l.text) - len(rest)
		var found bool
		switch {
		case strings.HasPrefix(rest, "/*"):
			_, rest, found = strings.Cut(rest[2:], "*/")
		case strings.HasPrefix(rest, "#"):
			_, rest, found = strings.Cut(rest, "\n")
		default:
			return
		}
		if !found {
			rest = ""
		}
		l.at = len(l.text) - len(rest)
	}
}

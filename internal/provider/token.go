package provider

// A provider file is read as tokens: names, numbers, strings and signs, each
// with its place.
//
// What D and C have in common at this level is all that is needed. What neither has, such
// as a quote that is not closed, becomes a token of its own: it may stand in a remark.

import (
	"fmt"
	"strconv"
	"strings"
)

// Pos is a place in a file.
type Pos struct {
	File   string
	Line   int // from 1
	Column int // in bytes, from 1
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Error is a fault of a file: what it is, and what to do about it.
type Error struct {
	Pos  Pos
	What string
	Cure string // "" where What says it
}

func (e *Error) Error() string {
	if e.Cure == "" {
		return fmt.Sprintf("%v: %s", e.Pos, e.What)
	}
	return fmt.Sprintf("%v: %s; %s", e.Pos, e.What, e.Cure)
}

// TokenKind tells tokens apart.
type TokenKind uint8

const (
	NameToken      TokenKind = iota
	NumberToken              // of C's preprocessor: a digit, and what may follow in any number
	TextToken                // a string or a character constant, with its quotes
	SignToken                // an operator or a parenthesis, of one character unless it is in signs
	DirectiveToken           // a line that begins with #: what follows that, without comments
	BadToken                 // not a token: Text says why
)

// Token is a word of a file.
type Token struct {
	Kind  TokenKind
	Text  string
	Pos   Pos
	Space bool // white space or a comment stands before it
}

// Is reports whether a token is a name or a sign of this spelling.
func (t *Token) Is(text string) bool {
	return (t.Kind == NameToken || t.Kind == SignToken) && t.Text == text
}

// startsName reports whether a name begins with a character.
func startsName(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }

// isDigit reports whether a character is a decimal digit.
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// longSigns are operators of more than one character.
var longSigns = []string{"...", "##", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>"}

// Scanner reads the tokens of a text, one after the other.
type Scanner struct {
	text   string
	at     int
	placed int // line and start are those of this place
	line   int
	start  int // of the line, in text
	file   string
	fresh  bool // nothing but white space stands before in the line
	// unclosed is where a comment begins that does not end, nil where there is none or
	// that was told.
	unclosed *Pos
}

// NewScanner reads the text of a file, or what a preprocessor has made of one.
func NewScanner(file, text string) *Scanner {
	return &Scanner{text: text, line: 1, file: file, fresh: true}
}

// moveTo makes the next line one of another file, or with another number: that is what
// #line says. An empty name keeps the file's.
func (s *Scanner) moveTo(file string, line int) {
	if file != "" {
		s.file = file
	}
	s.pos()
	s.line = line - 1 // the directive's line is to end yet
}

// pos returns the place of what comes next.
func (s *Scanner) pos() Pos {
	passed := s.text[s.placed:s.at]
	s.line += strings.Count(passed, "\n")
	if last := strings.LastIndexByte(passed, '\n'); last >= 0 {
		s.start = s.placed + last + 1
	}
	s.placed = s.at
	return Pos{s.file, s.line, s.at - s.start + 1}
}

// Next returns the next token, and false at the end. A token behind a directive that names its place has that.
func (s *Scanner) Next() (Token, bool) {
	for {
		t, ok := s.scan()
		if t.Kind == DirectiveToken {
			if file, line, marked := lineMarker(t.Text); marked {
				s.moveTo(file, line)
				continue
			}
		}
		return t, ok
	}
}

// scan is Next, but for directives that name places.
func (s *Scanner) scan() (t Token, ok bool) {
	space := s.space()
	if s.at >= len(s.text) {
		if at := s.unclosed; at != nil {
			s.unclosed = nil
			return Token{Kind: BadToken, Text: "this comment does not end", Pos: *at}, true
		}
		return t, false
	}
	begin, c := s.at, s.text[s.at]
	pos := s.pos()
	fresh := s.fresh
	s.fresh = false
	switch {
	case c == '#' && fresh:
		s.at++
		return Token{DirectiveToken, s.directive(), pos, space}, true
	case startsName(c):
		return Token{NameToken, s.run(begin), pos, space}, true
	case isDigit(c), c == '.' && begin+1 < len(s.text) && isDigit(s.text[begin+1]):
		return Token{NumberToken, s.number(begin), pos, space}, true
	case c == '"' || c == '\'':
		return s.quoted(begin, c, pos, space), true
	}
	for _, sign := range longSigns {
		if strings.HasPrefix(s.text[begin:], sign) {
			s.at += len(sign)
			return Token{SignToken, sign, pos, space}, true
		}
	}
	s.at++
	return Token{SignToken, s.text[begin:s.at], pos, space}, true
}

// run takes a name, or what goes on as one.
func (s *Scanner) run(begin int) string {
	for s.at < len(s.text) && (startsName(s.text[s.at]) || isDigit(s.text[s.at])) {
		s.at++
	}
	return s.text[begin:s.at]
}

// number takes a preprocessing number (C11, 6.4.8).
func (s *Scanner) number(begin int) string {
	for s.at < len(s.text) {
		c := s.text[s.at]
		sign := (c == '+' || c == '-') && s.at > begin && strings.IndexByte("eEpP", s.text[s.at-1]) >= 0
		if !startsName(c) && !isDigit(c) && c != '.' && !sign {
			break
		}
		s.at++
	}
	return s.text[begin:s.at]
}

// quoted takes a string or a character constant, which end with their line.
func (s *Scanner) quoted(begin int, quote byte, pos Pos, space bool) Token {
	i := begin + 1
	for ; i < len(s.text) && s.text[i] != '\n'; i++ {
		switch s.text[i] {
		case '\\':
			i++
		case quote:
			s.at = i + 1
			return Token{TextToken, s.text[begin:s.at], pos, space}
		}
	}
	s.at = min(i, len(s.text))
	return Token{BadToken, fmt.Sprintf("this %c is not closed in its line", quote), pos, space}
}

// space passes over white space, comments, and line ends that a backslash takes away.
func (s *Scanner) space() (found bool) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.fresh = true
		case c == ' ' || '\t' <= c && c <= '\r':
		case s.joined() > 0:
			s.at += s.joined() - 1
		case strings.HasPrefix(s.text[s.at:], "//"):
			end := strings.IndexByte(s.text[s.at:], '\n')
			if end < 0 {
				end = len(s.text) - s.at
			}
			s.at += end - 1
		case strings.HasPrefix(s.text[s.at:], "/*"):
			if !s.block() {
				return true
			}
		default:
			return found
		}
		found = true
		s.at++
	}
	return found
}

// joined returns the length of a backslash and the line end behind it, 0 where there is
// none.
func (s *Scanner) joined() int {
	switch rest := s.text[s.at:]; {
	case strings.HasPrefix(rest, "\\\n"):
		return 2
	case strings.HasPrefix(rest, "\\\r\n"):
		return 3
	}
	return 0
}

// block goes to the last character of a comment, and reports whether it has one.
func (s *Scanner) block() bool {
	end := strings.Index(s.text[s.at+2:], "*/")
	if end < 0 {
		at := s.pos()
		s.unclosed = &at
		s.text = s.text[:s.at]
		return false
	}
	s.at += end + 3
	return true
}

// lineMarker reads the text of a directive that says where the next line comes from: `line 12
// "file"', or `12 "file"' as compilers write it.
func lineMarker(text string) (file string, line int, ok bool) {
	words := strings.Fields(text)
	if len(words) > 0 && words[0] == "line" {
		words = words[1:]
	}
	if len(words) == 0 {
		return "", 0, false
	}
	line, err := strconv.Atoi(words[0])
	if err != nil || line < 0 || line > 1<<30 {
		return "", 0, false
	}
	if _, rest, ok := strings.Cut(text, `"`); ok && len(words) > 1 && words[1][0] == '"' {
		file = unquote(rest)
	}
	return file, line, true
}

// unquote reads the name of a file up to its closing quote. Compilers write a backslash
// before quotes and backslashes, and other characters as octal numbers.
func unquote(text string) string {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			if name, err := strconv.Unquote(`"` + text[:i+1]); err == nil {
				return name
			}
			return text[:i]
		}
	}
	return text
}

// directive takes the rest of the line, with those that are joined to it. Comments become
// spaces, and quotes keep what looks like comments.
func (s *Scanner) directive() string {
	var b strings.Builder
	quote := byte(0)
	for s.at < len(s.text) && s.text[s.at] != '\n' {
		c, rest := s.text[s.at], s.text[s.at:]
		switch {
		case s.joined() > 0:
			s.at += s.joined() - 1
			c = ' '
		case quote != 0:
			if c == '\\' && len(rest) > 1 && rest[1] != '\n' {
				b.WriteByte(c)
				s.at++
				c = s.text[s.at]
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			if closes(rest) {
				quote = c
			}
		case strings.HasPrefix(rest, "//"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				s.at += end
			} else {
				s.at = len(s.text)
			}
			return b.String()
		case strings.HasPrefix(rest, "/*"):
			if !s.block() {
				return b.String()
			}
			c = ' '
		}
		b.WriteByte(c)
		s.at++
	}
	return b.String()
}

// closes reports whether what begins with a quote has another of its kind in its line: in
// a line that is a remark, an apostrophe may stand alone.
func closes(text string) bool {
	line, _, _ := strings.Cut(text[1:], "\n")
	return strings.IndexByte(line, text[0]) >= 0
}

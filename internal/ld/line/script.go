package line

import (
	"path/filepath"
	"strings"
)

// Script is what a linker script says of files.
type Script struct {
	Inputs   []string // that INPUT, GROUP and STARTUP name, with -l
	Includes []string // other scripts
	Words    []string // everything else, file patterns among it, each once
}

// ParseScript reads a linker script, of GNU ld or as lld and gold have it. Nothing is
// wrong with a script here: the linker is the one to say so.
func ParseScript(text string) *Script {
	s := &Script{}
	p := scriptParser{rest: text}
	seen := map[string]bool{}
	depth := 0 // of parentheses, within a list of inputs
	for word := p.next(); word != ""; word = p.next() {
		switch {
		case depth > 0:
			depth = s.inList(word, depth)
		case word == "INPUT" || word == "GROUP" || word == "STARTUP":
			if p.next() == "(" {
				depth = 1
			}
		case word == "INCLUDE":
			s.Includes = append(s.Includes, p.next())
		case !seen[word]:
			seen[word] = true
			s.Words = append(s.Words, word)
		}
	}
	return s
}

// inList takes a word of a list of inputs.
func (s *Script) inList(word string, depth int) int {
	switch word {
	case "(":
		return depth + 1
	case ")":
		return depth - 1
	case ",", "AS_NEEDED":
	default:
		s.Inputs = append(s.Inputs, word)
	}
	return depth
}

type scriptParser struct{ rest string }

// next is the next word, without quotes, or "" at the end. A bracket of any kind is a
// word, but those of a pattern like [ab].o.
func (p *scriptParser) next() string {
	for {
		p.rest = strings.TrimLeft(p.rest, space)
		if !strings.HasPrefix(p.rest, "/*") {
			break
		}
		_, p.rest, _ = strings.Cut(p.rest[2:], "*/")
	}
	if p.rest == "" {
		return ""
	}
	if p.rest[0] == '"' {
		var word string
		if word, p.rest, _ = strings.Cut(p.rest[1:], `"`); word == "" {
			return p.next()
		}
		return word
	}
	const single = "(){},;"
	n := 1
	if strings.IndexByte(single, p.rest[0]) < 0 {
		if n = strings.IndexAny(p.rest, space+single+`"`); n < 0 {
			n = len(p.rest)
		}
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

// Selects reports whether a pattern of a script chooses a file, which is archive if it
// is one: then a pattern ARCHIVE:MEMBER does for some of its members.
func Selects(pattern, file string, archive bool) bool {
	before, after, ok := strings.Cut(pattern, ":")
	switch {
	case !ok:
		return match(pattern, file)
	case archive:
		return before != "" && match(before, file)
	}
	return before == "" && match(after, file)
}

// slashes hides slashes, and writes the negation of a class as Go has it.
var slashes = strings.NewReplacer("/", "\x01", string(filepath.Separator), "\x01", "[!", "[^")

// match is fnmatch without flags, as linkers use it: * and ? match a slash too. Nearly
// every word of a script is no pattern, or one of section names, so the beginning and
// the end are compared first.
func match(pattern, name string) bool {
	first := strings.IndexAny(pattern, `*?[\`)
	if first < 0 {
		return pattern == name
	}
	last := strings.LastIndexAny(pattern, `*?]\`)
	if !strings.HasPrefix(name, pattern[:first]) || !strings.HasSuffix(name, pattern[max(first, last)+1:]) {
		return false
	}
	// filepath.Match keeps slashes apart, so there are none for it.
	ok, err := filepath.Match(slashes.Replace(pattern), slashes.Replace(name))
	return ok && err == nil
}

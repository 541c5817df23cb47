package line

import (
	"slices"
	"strings"
)

// What stands in an output section beside file patterns.
var (
	// withArguments are words that something in parentheses follows, which names no file.
	withArguments = []string{
		"ASSERT", "PROVIDE", "PROVIDE_HIDDEN", "HIDDEN", "BYTE", "SHORT", "LONG", "QUAD", "SQUAD", "FILL", "INPUT_SECTION_FLAGS",
		"ALIGN", "AT", "NOCROSSREFS",
	}
	// alone are words other than names.
	alone = []string{"CONSTRUCTORS", "CREATE_OBJECT_SYMBOLS", "LINKER_VERSION", ",", ";"}

	sorts = []string{
		"SORT", "SORT_BY_NAME", "SORT_BY_ALIGNMENT", "SORT_BY_INIT_PRIORITY", "SORT_NONE", "REVERSE",
	}
	assignments = []string{"=", "+=", "-=", "*=", "/=", "<<=", ">>=", "&=", "|=", "^="}
)

// output takes what is in an output section. In OVERLAY, there are others in it.
func (p *scriptParser) output(depth int) {
	for !p.atEnd() {
		switch {
		case p.take("}"):
			return
		case p.take("{"):
			if depth > 2 {
				return
			}
			p.output(depth + 1)
		case p.is(alone...):
			p.next()
		case p.is(withArguments...):
			if p.next(); p.take("(") {
				p.skip("(", ")")
			}
		case p.take("INCLUDE"):
			p.include(Output)
		case p.take("ASCIZ"):
			p.next()
		default:
			p.statement()
		}
	}
}

// statement takes an assignment, or what chooses sections of files.
func (p *scriptParser) statement() {
	for p.take("KEEP") {
		p.take("(") // what closes it is passed over
	}
	for p.is("INPUT_SECTION_FLAGS") {
		if p.next(); p.take("(") {
			p.skip("(", ")")
		}
	}
	for p.take("EXCLUDE_FILE") {
		p.excluded()
	}
	if p.is(sorts...) {
		p.sorted()
		return
	}
	word := p.next()
	if !word.Quoted && strings.Contains(word.Text, "=") || p.assigns() {
		for !p.atEnd() && !p.is(";", "}") {
			p.next()
		}
		return
	}
	p.file(word)
}

func (p *scriptParser) assigns() bool {
	return !p.word.Quoted && (slices.Contains(assignments, p.word.Text) || strings.HasPrefix(p.word.Text, "="))
}

// sorted takes file patterns in the parentheses of SORT and the like, or constructors.
func (p *scriptParser) sorted() {
	depth := 0
	for p.is(sorts...) {
		if p.next(); p.take("(") {
			depth++
		}
	}
	for p.take("EXCLUDE_FILE") {
		p.excluded()
	}
	word := p.next()
	for ; depth > 0 && p.take(")"); depth-- {
	}
	if word.Quoted || word.Text != "CONSTRUCTORS" {
		p.file(word)
	}
}

// file takes a file pattern and the names of sections behind it.
func (p *scriptParser) file(word Name) {
	if !word.Quoted && (word.Text == "" || strings.Contains(single, word.Text)) {
		return
	}
	if p.is("{") || strings.HasPrefix(p.word.Text, ":") {
		return // an output section in OVERLAY
	}
	pattern := Pattern{Name: word}
	if p.take("(") {
		pattern.Sections = p.sectionNames()
	}
	p.script.Patterns = append(p.script.Patterns, pattern)
}

// sectionNames takes the rest of a list of names of sections.
func (p *scriptParser) sectionNames() (names []SectionName) {
	list, follows := -1, false
	for depth := 1; depth > 0 && !p.atEnd(); {
		switch {
		case p.take("EXCLUDE_FILE"):
			list, follows = p.excluded(), false
		case p.is(sorts...):
			p.next()
			follows = false
		case p.take("("):
			depth++
		case p.take(")"):
			depth--
			follows = false
		case p.take(","):
		default:
			names = append(names, SectionName{At: p.next().Start, List: list, Follows: follows, Sorted: depth > 1})
			list, follows = -1, true
		}
	}
	return names
}

// excluded takes the list of EXCLUDE_FILE, and returns where it ends.
func (p *scriptParser) excluded() (end int) {
	end = -1
	if !p.take("(") {
		return end
	}
	for !p.atEnd() && !p.is(")") {
		if p.take(",") || p.take("(") {
			continue
		}
		p.script.Patterns = append(p.script.Patterns, Pattern{Name: p.next(), Excludes: true})
	}
	end = p.word.Start
	p.take(")")
	return end
}

package line

import (
	"path/filepath"
	"strings"
)

// Dialect is a linker, of those that read scripts in different ways.
type Dialect uint8

const (
	GNU Dialect = iota
	Gold
	LLD
	Mold
)

// File is a file as a linker compares it with the patterns of scripts.
type File struct {
	Name    string
	Given   string // what the line or a script has called it; Name is where it was found
	Archive bool
	Member  string // of an archive, or ""
}

// Selects reports whether a pattern of a script chooses a file. As all four linkers were
// seen to do:
//
//   - GNU ld compares a pattern with the name of the file, or of the member of an archive;
//     ARCHIVE:MEMBER with both. A list of EXCLUDE_FILE may have an archive alone. A name
//     without wildcards is that which the file was given.
//   - gold compares it with the name of the file, or with "archive(member)".
//   - lld does with "archive:member". What is quoted has no wildcards.
func (d Dialect) Selects(p Pattern, f File) bool {
	switch d {
	case GNU:
		return selectsGNU(p, f)
	case Gold:
		if f.Archive {
			return matchOrSame(p.Text, f.Name+"("+f.Member+")")
		}
		return matchOrSame(p.Text, f.Name)
	case LLD:
		name := f.Name
		if f.Archive {
			name += ":" + f.Member
		}
		if p.Quoted {
			return p.Text == name
		}
		return match(p.Text, name)
	}
	return false
}

func selectsGNU(p Pattern, f File) bool {
	name := f.Name
	if f.Archive {
		name = f.Member
	}
	archive, member, two := strings.Cut(p.Text, ":")
	switch {
	case two && archive == "":
		return !f.Archive && (member == "" || matchOrSame(member, f.Name))
	case two:
		return f.Archive && (member == "" || matchOrSame(member, f.Member)) && matchOrSame(archive, f.Name)
	case p.Excludes:
		return matchOrSame(p.Text, name) || f.Archive && matchOrSame(p.Text, f.Name)
	case IsWildcard(p.Text):
		return match(p.Text, name)
	}
	return p.Text == f.Given
}

// IsWildcard reports whether a pattern may choose several files.
func IsWildcard(pattern string) bool { return strings.ContainsAny(pattern, "*?[") }

// Exact reports whether a pattern names one file, and is compared as it is.
func (d Dialect) Exact(p Pattern) bool { return !IsWildcard(p.Text) || d == LLD && p.Quoted }

// Obscure reports whether a pattern has a class of characters that linkers, or systems,
// do not agree on: with a bracket in it.
func Obscure(pattern string) bool {
	for {
		_, class, open := strings.Cut(pattern, "[")
		if !open {
			return false
		}
		class = strings.TrimLeft(class, "!^")
		inside, rest, closed := strings.Cut(class, "]")
		if !closed || inside == "" || strings.ContainsAny(inside, `[\`) {
			return true
		}
		pattern = rest
	}
}

func matchOrSame(pattern, name string) bool {
	if !IsWildcard(pattern) {
		return pattern == name
	}
	return match(pattern, name)
}

// slashes hides slashes, and writes the negation of a class as Go has it.
var slashes = strings.NewReplacer("/", "\x01", string(filepath.Separator), "\x01", "[!", "[^")

// match is fnmatch without flags, as linkers use it: * and ? match a slash too. Nearly
// every word of a script is plain, or a pattern of section names, so the beginning and
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

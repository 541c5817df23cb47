package check

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Key is what of a finding stays as it is when unrelated code moves: no address,
// no line, no directory.
type Key struct{ Rule, File, Function, Probe string }

// Key returns the key of a finding. Several may share it.
func (f *Finding) Key() Key {
	function := f.Function
	if f.Rule.once() {
		function = "" // of the first site, which may be another one tomorrow
	}
	return Key{f.Rule.Name, Base(f.File), function, f.Probe}
}

// Base returns the name of a file without directories; of a member of an archive,
// archive(member).
func Base(name string) string {
	archive, member := splitMember(name)
	switch {
	case name == "":
		return ""
	case member == "":
		return filepath.Base(name)
	}
	return filepath.Base(archive) + "(" + filepath.Base(member) + ")"
}

// Path returns the file that a finding is in: of a member the archive.
func (f *Finding) Path() string {
	archive, _ := splitMember(f.File)
	return archive
}

// splitMember takes the name of a member apart, lib.a(member.o). Both may have
// parentheses of their own, in pairs.
func splitMember(name string) (archive, member string) {
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 {
			if name[i] != '(' {
				break
			}
			return name[:i], name[i+1 : len(name)-1]
		}
	}
	return name, ""
}

// Fingerprint returns the key with the ordinal, as one line of text.
func (f *Finding) Fingerprint() string {
	k := f.Key()
	return strings.Join([]string{k.Rule, Field(k.File), Field(k.Function), Field(k.Probe), strconv.Itoa(f.Ordinal)}, " ")
}

// Field returns a part of a fingerprint: never empty, and without white space.
func Field(s string) string {
	if s = strings.Join(strings.Fields(s), "_"); s == "" {
		return "-"
	}
	return s
}

// number counts the findings that share a key.
func number(findings []Finding) {
	seen := map[Key]int{}
	for i := range findings {
		k := findings[i].Key()
		seen[k]++
		findings[i].Ordinal = seen[k]
	}
}

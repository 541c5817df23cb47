package check

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Key is what stays the same in a finding when unrelated code moves, and in another checkout: it has no
// address, no line, and no directory above the working directory.
type Key struct{ Rule, File, Function, Probe string }

// Key returns the key of a finding. Several may share it.
func (f *Finding) Key() Key {
	function := f.Function
	if f.Rule.once() {
		function = "" // of the first site, which may be another one tomorrow
	}
	return Key{f.Rule.Name, FileFrom(f.directory, f.File), function, f.Probe}
}

// PathFrom returns a path from a directory on, if it is below, and as it is otherwise.
func PathFrom(directory, name string) string {
	if directory == "" || !filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	below, err := filepath.Rel(directory, name)
	if err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator)) {
		return name
	}
	return below
}

// FileFrom is PathFrom for the name of a file or of a member of an archive; "" stays empty.
func FileFrom(directory, name string) string {
	archive, member := splitMember(name)
	if name == "" {
		return ""
	}
	return PathFrom(directory, archive) + member
}

// Base returns the name of a file without directories; of a member of an archive,
// archive(member).
func Base(name string) string {
	archive, member := splitMember(name)
	if name == "" {
		return ""
	}
	if len(member) > len("()") {
		member = "(" + filepath.Base(member[1:len(member)-1]) + ")"
	}
	return filepath.Base(archive) + member
}

// Path returns the file that a finding is in: of a member the archive.
func (f *Finding) Path() string {
	archive, _ := splitMember(f.File)
	return archive
}

// splitMember takes the name of a member apart, lib.a and (member.o). Both may have
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
			return name[:i], name[i:]
		}
	}
	return name, ""
}

// Fingerprint returns the key with the ordinal, as one line of text.
func (f *Finding) Fingerprint() string { return f.Key().Fingerprint(f.Ordinal) }

// Fingerprint returns the fingerprint of a finding with this key and ordinal.
func (k Key) Fingerprint(ordinal int) string {
	return strings.Join([]string{k.Rule, Field(k.File), Field(k.Function), Field(k.Probe), strconv.Itoa(ordinal)}, " ")
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

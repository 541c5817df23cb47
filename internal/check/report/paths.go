package report

import (
	"path/filepath"
	"strings"
)

// pathFrom returns a path from a directory on, if it is below, and as it is otherwise.
func pathFrom(directory, name string) string {
	if directory == "" || !filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	below, err := filepath.Rel(directory, name)
	if err != nil || below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator)) {
		return name
	}
	return below
}

// fileOf returns the file of a name: of a member of an archive, lib.a(member.o), the archive. Both
// may have parentheses of their own, in pairs.
func fileOf(name string) string {
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
			return name[:i]
		}
	}
	return name
}

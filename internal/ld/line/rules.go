package line

import (
	"path/filepath"
	"slices"
	"strings"
)

// Rules are what linkers do not have in common: how each finds libraries. The tests link
// random lines with all of them.
type Rules struct {
	Dialect Dialect // of scripts
	// SysrootSigns stand for the system root where a directory of -L begins with one.
	SysrootSigns []string
	// NeedsSysroot says that they stand for themselves without --sysroot.
	NeedsSysroot bool
	// JoinsSysroot says that a slash comes between the system root and the rest.
	JoinsSysroot bool
	// OneWordSysroot says that the system root is the value of --sysroot=, and of no other
	// spelling.
	OneWordSysroot bool
	// CleansPath says that ".." in a directory of -L is removed as text, also behind the
	// system root.
	CleansPath bool
	// InSysroot are directories below the system root, if there is one, that the linker
	// searches behind those of -L.
	InSysroot []string
	// TakesFirst says that -l is the first file of its name, also one for another machine.
	TakesFirst bool
	// StaticIsGlobal says that -static is of the whole line, whatever -Bdynamic follows.
	StaticIsGlobal bool
	// SavesFormat says that --pop-state takes back a --format.
	SavesFormat bool
	// NestedThin is what becomes of a thin archive with members of other archives.
	NestedThin NestedThin
}

// NestedThin is what a linker does with a thin archive that has members of other archives.
type NestedThin uint8

const (
	ReadsNested   NestedThin = iota // reads them
	RefusesNested                   // stops
	IgnoresNested                   // reads the others
)

// The rules of each linker.
var (
	GNURules  = Rules{Dialect: GNU, SysrootSigns: []string{"=", "$SYSROOT"}, OneWordSysroot: true}
	GoldRules = Rules{Dialect: Gold, InSysroot: []string{"/lib", "/usr/lib"}, StaticIsGlobal: true, SavesFormat: true}
	LLDRules  = Rules{Dialect: LLD, SysrootSigns: []string{"="}, JoinsSysroot: true, TakesFirst: true, NestedThin: RefusesNested}
	MoldRules = Rules{Dialect: Mold, SysrootSigns: []string{"=", "$SYSROOT"}, NeedsSysroot: true, CleansPath: true, NestedThin: IgnoresNested}
)

// directories returns those in which the linker looks for what an argument names, as far as
// the line tells.
func (l *Line) directories(at int) (all []string) {
	for _, directory := range l.searched(at) {
		all = append(all, l.InDirectory(directory))
	}
	return all
}

// searched returns the same, as the linker calls them in the directory that it changes to.
func (l *Line) searched(at int) (all []string) {
	for _, d := range l.Path {
		if d.Late && at < d.At {
			continue
		}
		directory := l.inSysroot(d.Name)
		if l.Rules.CleansPath {
			directory = normal(directory)
		}
		all = append(all, directory)
	}
	if l.Sysroot != "" && !l.onlyGiven() {
		for _, directory := range l.Rules.InSysroot {
			all = append(all, l.Sysroot+directory)
		}
	}
	return all
}

// normal removes ".." and "." from the name of a directory as C++ does: a slash stays behind one
// that is not the last.
func normal(directory string) string {
	clean := filepath.Clean(directory)
	switch filepath.Base(clean) {
	case ".", "..", "/":
		return clean
	}
	switch directory[strings.LastIndexByte(directory, '/')+1:] {
	case "", ".", "..":
		return clean + "/"
	}
	return clean
}

// onlyGiven reports whether no directory but those of -L is searched.
func (l *Line) onlyGiven() bool {
	return slices.ContainsFunc(l.Args, func(a Arg) bool { return a.Name == "nostdlib" })
}

// SearchIn takes in the directories of SEARCH_DIR in a script that an argument leads to, and
// reports whether there are any. flag says that it is a flag's value. As was seen:
//
//   - GNU ld and gold read a script of -T when they come to it, before any library. Its
//     directories are as those of -L.
//   - Otherwise, libraries behind the script are searched there last; gold ignores those of
//     a script that is an input.
func (l *Line) SearchIn(directories []string, at int, flag bool) bool {
	early := flag && l.Rules.Dialect != LLD
	if len(directories) == 0 || l.onlyGiven() || l.Rules.Dialect == Gold && !flag {
		return false
	}
	for _, name := range directories {
		l.Path = append(l.Path, Directory{name, at, !early})
	}
	slices.SortStableFunc(l.Path, func(a, b Directory) int {
		switch {
		case a.Late == b.Late:
			return a.At - b.At
		case a.Late:
			return 1
		}
		return -1
	})
	return true
}

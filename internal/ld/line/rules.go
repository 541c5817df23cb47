package line

import (
	"path/filepath"
	"slices"
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
	GoldRules = Rules{Dialect: Gold, InSysroot: []string{"/lib", "/usr/lib"}}
	LLDRules  = Rules{Dialect: LLD, SysrootSigns: []string{"="}, JoinsSysroot: true, TakesFirst: true, NestedThin: RefusesNested}
	MoldRules = Rules{Dialect: Mold, SysrootSigns: []string{"=", "$SYSROOT"}, NeedsSysroot: true, CleansPath: true, NestedThin: IgnoresNested}
)

// directories returns those in which the linker looks for libraries, as far as the line
// tells.
func (l *Line) directories() (all []string) {
	for _, directory := range l.searched() {
		all = append(all, l.InDirectory(directory))
	}
	return all
}

// searched returns the same, as the linker calls them in the directory that it changes to.
func (l *Line) searched() (all []string) {
	for _, directory := range l.Path {
		directory = l.inSysroot(directory)
		if l.Rules.CleansPath {
			directory = filepath.Clean(directory)
		}
		all = append(all, directory)
	}
	only := slices.ContainsFunc(l.Args, func(a Arg) bool { return a.Name == "nostdlib" })
	if l.Sysroot != "" && !only {
		for _, directory := range l.Rules.InSysroot {
			all = append(all, l.Sysroot+directory)
		}
	}
	return all
}

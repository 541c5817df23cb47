package line

import "path/filepath"

// Rules are what linkers do not have in common: how each finds libraries. The tests link
// random lines with all of them.
type Rules struct {
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
	GNU  = Rules{SysrootSigns: []string{"=", "$SYSROOT"}, OneWordSysroot: true}
	Gold = Rules{}
	LLD  = Rules{SysrootSigns: []string{"="}, JoinsSysroot: true, TakesFirst: true, NestedThin: RefusesNested}
	Mold = Rules{SysrootSigns: []string{"=", "$SYSROOT"}, NeedsSysroot: true, CleansPath: true, NestedThin: IgnoresNested}
)

// librariesIn returns the directory in which the linker looks for one of -L.
func (l *Line) librariesIn(directory string) string {
	directory = l.inSysroot(directory)
	if l.Rules.CleansPath {
		directory = filepath.Clean(directory)
	}
	return l.InFolder(directory)
}

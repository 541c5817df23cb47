package line

import (
	"os"
	"path/filepath"
	"strings"

	"sdtconvert/internal/paths"
)

// Candidates returns the files that -l may stand for, the likeliest first: a linker
// passes over those that are for another machine. Directories that the linker knows by
// itself are not searched.
func (l *Line) Candidates(arg *Arg) []string {
	var names []string
	if exact, ok := strings.CutPrefix(arg.Value, ":"); ok {
		if l.Rules.Dialect == Gold && strings.Contains(exact, "/") {
			return nil // it looks names up in listings of directories
		}
		names = []string{exact}
	} else {
		if !arg.Static {
			names = append(names, "lib"+arg.Value+".so")
		}
		names = append(names, "lib"+arg.Value+".a")
	}
	var found []string
	for _, directory := range l.directories() {
		for _, name := range names {
			file := directory + "/" + name // as linkers show it
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				found = append(found, file)
			}
		}
	}
	return found
}

// inSysroot replaces what stands for the system root at the beginning of a path.
func (l *Line) inSysroot(path string) string {
	if l.Rules.NeedsSysroot && l.Sysroot == "" {
		return path
	}
	for _, sign := range l.Rules.SysrootSigns {
		rest, ok := strings.CutPrefix(path, sign)
		switch {
		case !ok:
		case l.Rules.JoinsSysroot && l.Sysroot != "":
			return paths.Join(l.Sysroot, strings.TrimLeft(rest, "/"))
		default:
			return l.Sysroot + rest
		}
	}
	return path
}

// InDirectory returns where a path leads that is given to the linker.
func (l *Line) InDirectory(path string) string {
	if l.Directory == "" || filepath.IsAbs(path) {
		return path
	}
	return paths.Join(l.Directory, path)
}

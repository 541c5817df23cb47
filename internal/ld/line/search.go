package line

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/paths"
)

// Candidates returns the files that -l may stand for, the likeliest first: a linker
// passes over those that are for another machine. Directories that the linker knows by
// itself are not searched.
func (l *Line) Candidates(arg *Arg) []string {
	var names []string
	exact, ok := strings.CutPrefix(arg.Value, ":")
	switch {
	case l.Rules.Dialect == Gold && filepath.IsAbs(exact):
		return files([]string{exact})
	case l.Rules.Dialect == Gold && strings.Contains(exact, "/"):
		return nil // it looks names up in listings of directories
	case ok:
		names = []string{exact}
	default:
		if !arg.Static && !l.Static {
			names = append(names, "lib"+arg.Value+".so")
		}
		names = append(names, "lib"+arg.Value+".a")
	}
	var all []string
	for _, directory := range l.directories(arg.At) {
		for _, name := range names {
			all = append(all, directory+"/"+name) // as linkers show it
		}
	}
	return files(all)
}

// Repeats reports whether the linker ignores an argument because it is a -l that was there before:
// mold does.
func (l *Line) Repeats(at int) bool {
	arg := &l.Args[at]
	return l.Rules.Dialect == Mold && arg.Kind == Library &&
		slices.ContainsFunc(l.Args[:at], func(a Arg) bool { return a.Kind == Library && a.Value == arg.Value })
}

// files returns those of some paths that lead to a regular file.
func files(all []string) (found []string) {
	for _, path := range all {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			found = append(found, path)
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

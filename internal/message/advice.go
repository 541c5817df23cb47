package message

import (
	"os"

	"sdtconvert/internal/paths"
)

// LinkersFlag returns the flag by which compilers link through the installation that this program is of, or
// -BDIR, as documents call it, for a program that is not installed.
func LinkersFlag() string {
	if program, err := os.Executable(); err == nil {
		if program, err = paths.Real(program); err == nil {
			directory := paths.Join(paths.Directory(paths.Directory(program)), "libexec/sdtconvert")
			if _, err := os.Stat(paths.Join(directory, "ld")); err == nil {
				return "-B" + directory
			}
		}
	}
	return "-BDIR (DIR is the directory of linkers that scripts/install prints)"
}

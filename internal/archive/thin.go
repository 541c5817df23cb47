package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sdtconvert/internal/paths"
)

// Path returns the path of the file that a member of a thin archive is or, if it has an
// Origin, of the archive that it is in. A relative one begins in the directory of the
// thin archive.
func (a *Archive) Path(m *Member) string {
	if filepath.IsAbs(m.Name) {
		return m.Name
	}
	return paths.Beside(a.Name, m.Name)
}

// ErrOutside says that a path of a thin archive leads out of the archive's directory.
var ErrOutside = errors.New("lies outside of the archive's directory")

// CheckInside refuses a path that leads out of the directory of a thin archive, by
// itself or by a symbolic link. The author of such an archive could have any
// file read, or converted, that its user may read.
func (a *Archive) CheckInside(path string) error {
	directory, err := paths.Real(paths.Directory(a.Name))
	if err != nil {
		return err
	}
	real, err := paths.Real(path)
	if errors.Is(err, os.ErrNotExist) {
		real, err = filepath.Abs(path) // opening it will tell what is wrong
	}
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(directory, real)
	if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
		return fmt.Errorf("%w, at %s", ErrOutside, real)
	}
	return nil
}

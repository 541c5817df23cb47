// Package systems has the parameters of probes that systems ship, as provider files declare them: their makers document them, but
// programs do not carry them.
package systems

import (
	"embed"
	"io/fs"

	"sdtconvert/internal/provider"
)

//go:embed *.d
var files embed.FS

// Read returns the files by name.
func Read() (map[string]*provider.File, error) {
	all := map[string]*provider.File{}
	paths, err := fs.Glob(files, "*.d")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		data, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if all[path], err = provider.Parse(provider.NewScanner(path, string(data))); err != nil {
			return nil, err
		}
	}
	return all, nil
}

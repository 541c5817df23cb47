package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// Executable returns the path of the program that runs. Where the system does not tell, as without /proc, it is the path by which the
// program was called.
func Executable() (string, error) {
	path, err := os.Executable()
	if err == nil {
		return path, nil
	}
	called, callErr := exec.LookPath(os.Args[0])
	if callErr == nil {
		called, callErr = filepath.Abs(called)
	}
	if callErr != nil {
		return "", errors.Join(err, callErr)
	}
	return called, nil
}

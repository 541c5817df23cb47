package process

import (
	"errors"
	"os"
	"os/exec"
)

// Executable returns a path of the program that runs. Where the system does not tell, as without /proc, it is the one by which the
// program was called.
func Executable() (string, error) {
	path, err := os.Executable()
	if err == nil {
		return path, nil
	}
	called, callErr := exec.LookPath(os.Args[0])
	if callErr != nil {
		return "", errors.Join(err, callErr)
	}
	return called, nil
}

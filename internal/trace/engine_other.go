//go:build !linux

package trace

import "errors"

// Run fails: only Linux lets a program trace another as this package does.
func Run(Options) (*Statistics, error) {
	return nil, errors.New("programs can be traced on Linux only")
}

//go:build !linux

package ld

import "errors"

func openDescriptor(string) (int, error) { return -1, errors.ErrUnsupported }
func closeDescriptor(int)                {}
func newDescriptor([]byte) (int, error)  { return -1, errors.ErrUnsupported }

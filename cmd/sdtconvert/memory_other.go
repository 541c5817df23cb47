//go:build !linux

package main

// reserveHeap does nothing where the system does not ask for it.
func reserveHeap() {}

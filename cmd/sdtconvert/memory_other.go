//go:build !linux

package main

// reserveHeap does nothing: only Linux is asked for huge pages.
func reserveHeap() {}

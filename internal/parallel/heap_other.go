//go:build !linux

package parallel

func useHugePages([]byte) {}

package tools

import (
	"slices"
	"strings"
)

// RecordsAlone returns the flags of a conversion that makes records, and no notes unless a flag
// asks for them.
func RecordsAlone(flags ...string) []string {
	says := func(flag string) bool {
		return flag == "--stapsdt" || flag == "--no-records" || strings.HasPrefix(flag, "--layout") || strings.HasPrefix(flag, "--section")
	}
	if slices.ContainsFunc(flags, says) {
		return slices.Clip(flags)
	}
	return append([]string{"--layout=pairs"}, flags...)
}

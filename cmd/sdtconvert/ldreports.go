package main

import "strings"

// makefileName writes a name as linkers do in rules of make.
func makefileName(name string) string {
	return strings.NewReplacer(" ", `\ `, "#", `\#`, "$", "$$").Replace(name)
}

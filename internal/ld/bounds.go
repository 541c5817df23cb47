package ld

import (
	"sdtconvert/arch"
	"sdtconvert/linkerset"
)

// bounds returns the flags that make the linker define the bounds of the sections of
// records of some kinds. Linkers define __start_<section> and __stop_<section> only if something
// refers to them. Nothing in a FreeBSD kernel does: its linker_file_lookup_set asks for
// the symbols by name, and says ENOENT if they are missing.
func bounds(layout linkerset.Layout, kinds []arch.Kind) []string {
	if layout.Format != linkerset.FreeBSD {
		return nil
	}
	var words []string
	for _, kind := range kinds {
		section := layout.Section(kind)
		words = append(words, "-u", "__start_"+section, "-u", "__stop_"+section)
	}
	return words
}

package check

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/linkerset"
)

// MissingBounds is a rule for kernels and modules of FreeBSD, whose linker looks for the
// bounds of a linker set among the symbols.
var MissingBounds = &Rule{"missing-bounds", Error, "a FreeBSD kernel cannot find the records",
	"Linkers define __start_<section> and __stop_<section> only if something refers to them, and nothing in a kernel or a module does.",
	"Link with sdtconvert ld --layout freebsd, or with -u for each of the two symbols."}

// bounds applies MissingBounds to an image of FreeBSD. link_elf.c looks for the symbols in
// .dynsym and then in .symtab, and says ENOENT where both lack them. Objects and the
// modules of amd64 are found by the names of sections, and stripped files are skipped.
func (c *fileChecker) bounds(layouts []linkerset.Layout) error {
	if c.relocatable() || c.OSABI() != elf.ELFOSABI_FREEBSD {
		return nil
	}
	static, err := c.Symbols()
	if err != nil {
		return err
	}
	if static.Len() == 0 {
		return nil
	}
	dynamic, err := c.DynamicSymbols()
	if err != nil {
		return err
	}
	has := func(name string) bool {
		for i := 1; i < static.Len(); i++ {
			if static.Name(i) == name {
				return true
			}
		}
		for i := 1; i < dynamic.Len(); i++ {
			if dynamic.Name(i) == name && dynamic.At(i).Section != 0 {
				return true
			}
		}
		return false
	}
	for _, layout := range layouts {
		if layout.Format != linkerset.FreeBSD {
			continue
		}
		for kind := range arch.Kinds {
			section := layout.Section(kind)
			ranges, err := c.code.Image.Arrays(section)
			if err != nil {
				return err
			}
			if len(ranges) > 0 && !(has("__start_"+section) && has("__stop_"+section)) {
				c.addWhole(MissingBounds, "", "no __start_%s and __stop_%s, so the kernel finds no record in this section", section, section)
			}
		}
	}
	return nil
}

package locate

import (
	"debug/elf"
	"path/filepath"
	"strings"

	"sdtconvert/elfreloc"
)

// moduleName returns what dtrace(1) calls the module of a file: the file's name, without
// .ko for modules of kernels. The kernel that FreeBSD's makefiles leave with its debug
// information, kernel.full or kernel.debug, is the module kernel, and so are coffee.ko.full
// and coffee.ko.debug the module coffee.
func moduleName(path string, o *elfreloc.Object) string {
	name := filepath.Base(path)
	if o.OSABI() == elf.ELFOSABI_FREEBSD {
		name = trimSuffix(trimSuffix(name, ".debug"), ".full")
	}
	return trimSuffix(name, ".ko")
}

// trimSuffix removes a suffix, unless it is all there is.
func trimSuffix(name, suffix string) string {
	if short := strings.TrimSuffix(name, suffix); short != "" {
		return short
	}
	return name
}

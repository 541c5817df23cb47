package provider

import (
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"sdtconvert/internal/dof"
	"sdtconvert/internal/dtrace"
	"sdtconvert/internal/paths"
)

// System is a system that has probes.
type System uint8

const (
	Linux   System = iota // notes, semaphores
	FreeBSD               // DOF
	Illumos               // DOF; Solaris, too
)

// system is what systems differ in.
type system struct {
	name       string
	osABI      elf.OSABI
	relocation dof.Relocation
	aliases    dtrace.Aliases
	function   int    // the longest name of a function that the kernel takes, in bytes with its NUL
	gnu        bool   // linkers read GNU's notes
	drti       string // DTrace's own code that registers a program, of 64 bits
	macros     []string
}

const (
	stvEliminate = 6                // STV_ELIMINATE: hidden, and not in the symbol table of what is linked
	shnIgnore    = 0xff3f - 0x10000 // SHN_SUNW_IGNORE
)

// On FreeBSD a linker stores the distance of a function from the field, so that nothing
// is left to do for a loader. illumos' linker knows the section, and does the same of
// an address.
var systems = [...]system{
	Linux: {name: "Linux", osABI: elf.ELFOSABI_NONE, macros: []string{"__linux__", "__linux", "__gnu_linux__"}},
	FreeBSD: {name: "FreeBSD", osABI: elf.ELFOSABI_FREEBSD, relocation: dof.Relative, aliases: dtrace.Aliases{Visibility: byte(elf.STV_HIDDEN)}, function: 192, gnu: true, drti: "usr/lib/dtrace/drti.o",
		macros: []string{"__FreeBSD__"}},
	Illumos: {name: "illumos", osABI: elf.ELFOSABI_NONE, relocation: dof.SetX, aliases: dtrace.Aliases{Visibility: stvEliminate, Ignored: shnIgnore}, function: 128, drti: "usr/lib/dtrace/64/drti.o",
		macros: []string{"__sun", "__sun__", "__SVR4", "__svr4__"}},
}

func (s System) String() string { return systems[s].name }

// OSABI returns what the headers of objects say of the system.
func (s System) OSABI() elf.OSABI { return systems[s].osABI }

// Relocation returns how the kernel reads what a linker has left in DTrace's object format.
func (s System) Relocation() dof.Relocation { return systems[s].relocation }

// LinksGNU reports whether linkers read GNU's notes.
func (s System) LinksGNU() bool { return systems[s].gnu }

// Aliases returns how DTrace's object format refers to functions of objects of the system.
func (s System) Aliases() dtrace.Aliases { return systems[s].aliases }

// Macros returns those that compilers for the system have and others do not.
func (s System) Macros() []string { return systems[s].macros }

// DOF reports whether probes are in DTrace's object format there.
func (s System) DOF() bool { return s != Linux }

// LongestFunction returns how long the name of a function may be, in bytes with its NUL.
func (s System) LongestFunction() int { return systems[s].function }

// Drti returns where DTrace's code that registers a program is, in a tree of the system.
func (s System) Drti(sysroot string) string {
	return paths.Join(sysroot, filepath.FromSlash(systems[s].drti))
}

// ErrSystem says that a system's form of probes is not known.
var ErrSystem = errors.New("has no form of probes that is known here; --target names a system that has")

// ParseSystem returns the system of a triplet, or of a name that Go has for one; Linux if
// it has none.
func ParseSystem(name string) (System, error) {
	for _, known := range []struct {
		word string
		System
	}{{"freebsd", FreeBSD}, {"solaris", Illumos}, {"illumos", Illumos}, {"sunos", Illumos}} {
		if strings.Contains(name, known.word) {
			return known.System, nil
		}
	}
	for _, other := range []string{"darwin", "apple", "windows", "mingw", "cygwin", "netbsd", "openbsd", "dragonfly", "aix"} {
		if strings.Contains(name, other) {
			return Linux, fmt.Errorf("%s: %w", name, ErrSystem)
		}
	}
	return Linux, nil
}

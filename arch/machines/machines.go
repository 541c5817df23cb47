// Package machines is the one table from an object's header to what is known of
// its machine.
package machines

import (
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm"
	"sdtconvert/arch/arm64"
	"sdtconvert/arch/i386"
	"sdtconvert/arch/loong64"
	"sdtconvert/arch/ppc64"
	"sdtconvert/arch/riscv64"
	"sdtconvert/arch/s390x"
	"sdtconvert/elfreloc"
)

// supported are the machines that probes can be disabled for, a line for each.
var supported = []arch.Machine{
	amd64.Machine,
	arm.Machine{},
	arm64.Machine{},
	i386.Machine,
	loong64.Machine{},
	ppc64.ELFv1,
	ppc64.ELFv2,
	ppc64.Little,
	riscv64.Machine{},
	s390x.Machine{},
}

// variants are the supported machines, and the variants of them that another byte order makes.
var variants = slices.Concat(supported, arm.Others)

// All returns the machines, for tests.
func All() []arch.Machine { return supported }

// Lookup returns the Machine for an object's ABI, or nil when there is none. ABIs of several
// machines share an e_machine, as x32 does with that of x86-64.
func Lookup(wanted elfreloc.ABI) arch.Machine {
	for _, m := range variants {
		for _, abi := range m.Traits().ABIs {
			if abi.Matches(wanted.Machine, wanted.Class, wanted.Data, wanted.Flags) {
				return m
			}
		}
	}
	return nil
}

// Unsupported names what the header of an object says that Lookup has no Machine for, as far
// as it matters: byte order and flags where another ABI of the same e_machine is known.
func Unsupported(wanted elfreloc.ABI) string {
	for _, m := range supported {
		for _, abi := range m.Traits().ABIs {
			if abi.Machine == wanted.Machine && abi.Class == wanted.Class {
				return fmt.Sprintf("%v of class %v, %v and e_flags %#x", wanted.Machine, wanted.Class, wanted.Data, wanted.Flags)
			}
		}
	}
	return fmt.Sprintf("%v of class %v", wanted.Machine, wanted.Class)
}

// Package machines is the one table from an object's header to what is known of
// its machine.
package machines

import (
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm"
	"sdtconvert/arch/arm64"
	"sdtconvert/arch/i386"
	"sdtconvert/arch/riscv64"
	"sdtconvert/arch/s390x"
)

// all are the machines that probes can be disabled for, a line for each.
var all = []arch.Machine{
	amd64.Machine{},
	arm.Machine{},
	arm64.Machine{},
	i386.Machine{},
	riscv64.Machine{},
	s390x.Machine{},
}

// orders are the same machines in files of another byte order, where what is known of them
// depends on it.
var orders = arm.Others

// All returns the machines, for tests.
func All() []arch.Machine { return all }

// Unknown says which machine an object is of that Lookup does not know: its e_machine and
// class, and where another ABI of the same is known, its e_flags.
func Unknown(machine elf.Machine, class elf.Class, data elf.Data, flags uint32) string {
	for _, m := range all {
		for _, abi := range m.Traits().ABIs {
			if abi.Mask != 0 && abi.Matches(machine, class, data, abi.Flags) {
				return fmt.Sprintf("%v of class %v with e_flags %#x", machine, class, flags)
			}
		}
	}
	return fmt.Sprintf("%v of class %v", machine, class)
}

// Lookup returns the Machine for an object, or nil when there is none. The parameters
// are e_machine, EI_CLASS, EI_DATA and e_flags: ABIs of several machines share an
// e_machine, as x32 does with that of x86-64.
func Lookup(machine elf.Machine, class elf.Class, data elf.Data, flags uint32) arch.Machine {
	for _, known := range [...][]arch.Machine{all, orders} {
		for _, m := range known {
			for _, abi := range m.Traits().ABIs {
				if abi.Matches(machine, class, data, flags) {
					return m
				}
			}
		}
	}
	return nil
}

// Package machines is the one table from an object's e_machine to what is
// known of that machine.
package machines

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm64"
	"sdtconvert/arch/riscv64"
)

// key tells ABIs apart that share an e_machine: x32 is EM_X86_64 in ELFCLASS32.
type key struct {
	machine elf.Machine
	class   elf.Class
}

var table = []struct {
	key
	arch.Machine
}{
	{key{elf.EM_X86_64, elf.ELFCLASS64}, amd64.Machine{}},
	{key{elf.EM_AARCH64, elf.ELFCLASS64}, arm64.Machine{}},
	{key{elf.EM_RISCV, elf.ELFCLASS64}, riscv64.Machine{}},
}

// Lookup returns the Machine for an object, or nil when there is none.
func Lookup(machine elf.Machine, class elf.Class) arch.Machine {
	for _, m := range table {
		if m.key == (key{machine, class}) {
			return m.Machine
		}
	}
	return nil
}

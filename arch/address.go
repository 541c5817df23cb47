package arch

import "debug/elf"

// Addresses says how the value of a function's symbol leads to its first
// instruction. It is known of more machines than those that probes can be
// disabled for, since functions are looked up in images of any of them. The
// zero value means that the value is the address.
type Addresses struct {
	// Mode are the bits of the value that choose an instruction set and are no
	// part of the address.
	Mode uint64

	// Descriptors is the section of function descriptors: a symbol in it stands
	// for the code whose address is the first word there. "" means none.
	Descriptors string
	// Absolute is the type of the relocation that stores an address in a word of
	// an object, and LoadBase of the one that adds the load base to it in an image.
	Absolute, LoadBase uint32
}

// addresses is the table behind AddressesOf.
var addresses = map[elf.Machine]Addresses{
	// ELF for the Arm Architecture, 5.5.3: bit 0 of a function means Thumb.
	elf.EM_ARM: {Mode: 1},
	// MIPS16 and microMIPS functions are odd where st_other does not say so.
	elf.EM_MIPS: {Mode: 1},
	// 64-bit PowerPC ELF ABI 1.9, 3.2.5: R_PPC64_ADDR64 and R_PPC64_RELATIVE.
	elf.EM_PPC64: {Descriptors: ".opd", Absolute: uint32(elf.R_PPC64_ADDR64), LoadBase: uint32(elf.R_PPC64_RELATIVE)},
}

// AddressesOf returns what is known of a machine; flags is the image's e_flags.
func AddressesOf(machine elf.Machine, flags uint32) Addresses {
	// 64-Bit ELF V2 ABI, 4.1: the ABI's version; 0 is one without use of either.
	const abiMask, noDescriptors = 3, 2
	if machine == elf.EM_PPC64 && flags&abiMask >= noDescriptors {
		return Addresses{}
	}
	return addresses[machine]
}

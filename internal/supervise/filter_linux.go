package supervise

import (
	"encoding/binary"
	"math/bits"
	"runtime"

	"golang.org/x/sys/unix"
)

// abi is a way of entering the kernel: which numbers the calls have there. A program may
// be made for another than this one is, as 32-bit linkers are on 64-bit kernels.
type abi struct {
	arch         uint32 // AUDIT_ARCH_* of <linux/audit.h>
	open, openat int    // open is 0 on machines that have openat alone
}

// openat2 has one number everywhere.
const openat2 = unix.SYS_OPENAT2

// abis are those that kernels of each machine have. x32 is left out: no distribution has a
// linker of it.
var abis = map[string][]abi{
	"amd64":   {{unix.AUDIT_ARCH_X86_64, 2, 257}, {unix.AUDIT_ARCH_I386, 5, 295}},
	"386":     {{unix.AUDIT_ARCH_I386, 5, 295}, {unix.AUDIT_ARCH_X86_64, 2, 257}},
	"arm64":   {{unix.AUDIT_ARCH_AARCH64, 0, 56}, {unix.AUDIT_ARCH_ARM, 5, 322}},
	"arm":     {{unix.AUDIT_ARCH_ARM, 5, 322}, {unix.AUDIT_ARCH_AARCH64, 0, 56}},
	"riscv64": {{unix.AUDIT_ARCH_RISCV64, 0, 56}},
	"loong64": {{unix.AUDIT_ARCH_LOONGARCH64, 0, 56}},
	"ppc64le": {{unix.AUDIT_ARCH_PPC64LE, 5, 286}},
	"ppc64":   {{unix.AUDIT_ARCH_PPC64, 5, 286}, {unix.AUDIT_ARCH_PPC, 5, 286}},
	"s390x":   {{unix.AUDIT_ARCH_S390X, 5, 288}},
}

// Offsets in struct seccomp_data: the number of the call, the ABI, and the low half of an
// argument, whose first byte depends on the machine.
const (
	numberOffset = 0
	archOffset   = 4
	argsOffset   = 16
)

func argOffset(i uint32) uint32 {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // the high half comes first
		return argsOffset + 8*i + 4
	}
	return argsOffset + 8*i
}

// Instructions of the classic Berkeley packet filter, which seccomp(2) runs.
const (
	load        = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	and         = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	jumpIfEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ret         = unix.BPF_RET | unix.BPF_K
)

const (
	allow  = 0x7fff0000 // SECCOMP_RET_ALLOW
	notify = unix.SECCOMP_RET_USER_NOTIF
)

// newFilter returns the program of the filter. It stops opens of files, not of directories,
// for reading, and with writes also for writing.
func newFilter(writes bool) []unix.SockFilter {
	mask := uint32(unix.O_DIRECTORY | unix.O_PATH)
	if !writes {
		mask |= unix.O_ACCMODE
	}
	var program []unix.SockFilter
	for _, a := range abis[runtime.GOARCH] {
		program = append(program, a.filter(mask)...)
	}
	return append(program, unix.SockFilter{Code: ret, K: allow})
}

// filter returns the part of the program for an ABI. It ends with a result, and is passed
// over for another ABI.
func (a abi) filter(mask uint32) []unix.SockFilter {
	var rows []unix.SockFilter
	emit := func(code uint16, k uint32) { rows = append(rows, unix.SockFilter{Code: code, K: k}) }
	// call emits the test of one call, whose flags are an argument: none of the mask's may
	// be set. It falls through for other calls.
	call := func(number int, flags uint32) {
		rows = append(rows, unix.SockFilter{Code: jumpIfEqual, K: uint32(number), Jf: 5})
		emit(load, argOffset(flags))
		emit(and, mask)
		rows = append(rows, unix.SockFilter{Code: jumpIfEqual, K: 0, Jf: 1})
		emit(ret, notify)
		emit(ret, allow)
	}
	emit(load, numberOffset)
	if a.open != 0 {
		call(a.open, 1)
	}
	call(a.openat, 2)
	rows = append(rows, unix.SockFilter{Code: jumpIfEqual, K: openat2, Jf: 1})
	emit(ret, notify)
	emit(ret, allow)
	head := []unix.SockFilter{{Code: load, K: archOffset}, {Code: jumpIfEqual, K: a.arch, Jf: uint8(len(rows))}}
	return append(head, rows...)
}

// call is what a stopped call asks for: which of its arguments are what. It is false for a
// call that the filter does not stop.
func (a abi) call(number int, args [6]uint64) (directory int, path uint64, flags uint64, ok bool) {
	switch {
	case number == a.open && a.open != 0:
		return unix.AT_FDCWD, args[0], args[1], true
	case number == a.openat:
		return int(int32(args[0])), args[1], args[2], true
	case number == openat2:
		return int(int32(args[0])), args[1], 0, true
	}
	return 0, 0, 0, false
}

// pointer returns an address of a program of the ABI, whose upper half is not defined if it
// is of 32 bits.
func (a abi) pointer(address uint64) uint64 {
	const is64 = 0x80000000 // __AUDIT_ARCH_64BIT
	if a.arch&is64 == 0 && bits.UintSize == 64 {
		return uint64(uint32(address))
	}
	return address
}

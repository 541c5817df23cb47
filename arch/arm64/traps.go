package arm64

// The handler of SIGTRAP by which a program goes on behind breakpoints whose tracer was killed.

import "sdtconvert/arch"

// Offsets in the kernel's struct ucontext, and numbers of system calls.
const (
	contextLink = 424
	contextPC   = 440

	codeAt = 8 // in siginfo_t

	sysTgkill    = 131
	sysSigaction = 134
	sysSigreturn = 139
	sysGetpid    = 172
	sysGettid    = 178

	sigtrap = 5
)

// TrapHandler implements arch.Jumper.
func (Machine) TrapHandler(table uint64) []byte {
	a := &assembly{}
	a.call(sysSigreturn)
	for len(a.code) < arch.TrapHandlerEntry {
		a.add(0xd503201f) // nop
	}
	a.add(0xb9400000, codeAt/4<<10, rn(1), 9)    // ldr w9, [x1, #code]
	a.add(0x7100001f, rn(9))                     // cmp w9, #0
	sent := a.forward(0x5400000d)                // b.le other: it was sent
	a.add(0xf9400000, contextPC/8<<10, rn(2), 9) // ldr x9, [x2, #pc]
	a.constant(10, table)
	again := len(a.code)
	a.add(0xf9400000, rn(10), 11)                                   // ldr x11, [x10]
	other := a.forward(0xb400000b)                                  // cbz x11, other
	a.add(0x91000000, arch.TrapEntrySize<<10, rn(10), 10)           // add x10, x10, #16
	a.add(0xeb00001f, rm(9), rn(11))                                // cmp x11, x9
	a.back(again, 0x54000001)                                       // b.ne again
	a.add(0xf8400000, (0x200-arch.TrapEntrySize+8)<<12, rn(10), 11) // ldur x11, [x10, #-8]
	known := a.forward(0xb500000b)                                  // cbnz x11, known
	a.add(0xf9400000, contextLink/8<<10, rn(2), 11)                 // ldr x11, [x2, #x30]
	a.land(known)
	a.add(0xf9000000, contextPC/8<<10, rn(2), 11) // str x11, [x2, #pc]
	a.add(0xd65f03c0)                             // ret
	a.land(sent)
	a.land(other) // which ends the program
	a.constant(0, sigtrap)
	a.constant(1, table+arch.TrapTableSize)
	a.constant(2, 0)
	a.constant(3, 8)
	a.call(sysSigaction)
	a.call(sysGetpid)
	a.add(0xaa0003e0, rm(0), 9) // mov x9, x0
	a.call(sysGettid)
	a.add(0xaa0003e0, rm(0), 1) // mov x1, x0
	a.add(0xaa0003e0, rm(9), 0) // mov x0, x9
	a.constant(2, sigtrap)
	a.call(sysTgkill)
	a.add(0xd65f03c0) // ret
	return a.code
}

// call adds a system call.
func (a *assembly) call(number uint64) {
	a.constant(8, number)
	a.add(0xd4000001) // svc #0
}

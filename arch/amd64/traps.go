package amd64

// The handler of SIGTRAP by which a program goes on behind breakpoints whose tracer was killed.

import "sdtconvert/arch"

// Offsets in the kernel's struct ucontext, and numbers of system calls.
const (
	contextSP = 160
	contextPC = 168

	codeAt = 8 // in siginfo_t

	sysSigaction = 13
	sysSigreturn = 15
	sysGetpid    = 39
	sysGettid    = 186
	sysTgkill    = 234

	sigtrap = 5
)

// TrapHandler implements arch.Jumper.
func (machine) TrapHandler(table uint64) []byte {
	a := &assembly{}
	a.call(sysSigreturn)
	for len(a.code) < arch.TrapHandlerEntry {
		a.add(0xcc) // int3
	}
	a.add32(contextPC, 0x48, 0x8b, 0x82) // mov rip(%rdx),%rax
	a.add(0x48, 0xff, 0xc8)              // dec %rax
	a.add64(table, 0x48, 0xb9)           // movabs $table,%rcx
	again := len(a.code)
	a.add(0x4c, 0x8b, 0x01)                                // mov (%rcx),%r8
	a.add(0x4d, 0x85, 0xc0)                                // test %r8,%r8
	other := a.forward(0x0f, 0x84)                         // je other
	a.add(0x48, 0x83, 0xc1, arch.TrapEntrySize)            // add $16,%rcx
	a.add(0x49, 0x39, 0xc0)                                // cmp %rax,%r8
	a.back(again, 0x0f, 0x85)                              // jne again
	a.add(0x48, 0x8b, 0x41, 0x100-arch.TrapEntrySize+word) // mov -8(%rcx),%rax
	a.add(0x83, 0x7e, codeAt, 0)                           // cmpl $0,8(%rsi): was it sent
	met := a.forward(0x0f, 0x8f)                           // jg met
	a.add32(contextPC, 0x48, 0x3b, 0x82)                   // cmp rip(%rdx),%rax: behind a NOP of one byte
	sent := a.forward(0x0f, 0x84)                          // je other
	a.land(met)
	a.add(0x48, 0x85, 0xc0)              // test %rax,%rax
	known := a.forward(0x0f, 0x85)       // jne known
	a.add32(contextSP, 0x48, 0x8b, 0x8a) // mov rsp(%rdx),%rcx
	a.add(0x48, 0x8b, 0x01)              // mov (%rcx),%rax
	a.add32(contextSP, 0x48, 0x83, 0x82) // addq $8,rsp(%rdx)
	a.add(word)
	a.land(known)
	a.add32(contextPC, 0x48, 0x89, 0x82) // mov %rax,rip(%rdx)
	a.add(0xc3)                          // ret
	a.land(other)                        // which ends the program
	a.land(sent)
	a.add32(sigtrap, 0xbf)                        // mov $SIGTRAP,%edi
	a.add64(table+arch.TrapTableSize, 0x48, 0xbe) // movabs $zeros,%rsi
	a.add(0x31, 0xd2)                             // xor %edx,%edx
	a.add32(word, 0x41, 0xba)                     // mov $8,%r10d
	a.call(sysSigaction)
	a.call(sysGetpid)
	a.add(0x89, 0xc7) // mov %eax,%edi
	a.call(sysGettid)
	a.add(0x89, 0xc6)      // mov %eax,%esi
	a.add32(sigtrap, 0xba) // mov $SIGTRAP,%edx
	a.call(sysTgkill)
	a.add(0xc3) // ret
	return a.code
}

// call adds a system call.
func (a *assembly) call(number uint32) {
	a.add32(number, 0xb8) // mov $number,%eax
	a.add(0x0f, 0x05)     // syscall
}

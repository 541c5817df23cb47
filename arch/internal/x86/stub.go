package x86

import "sdtconvert/arch"

// Stub returns, after it has set the result where there is one. load returns the code that
// loads a semaphore and goes on with what returns.
func (m *Mode) Stub(s arch.Stub, load func(semaphore string, returns []arch.Insn) []arch.Insn) []arch.Insn {
	var code []arch.Insn
	if s.LandingPad {
		code = append(code, m.LandingPad)
	}
	returns := m.ret(s.Thunk)
	switch {
	case s.Semaphore != "":
		return append(code, load(s.Semaphore, returns)...)
	case s.Kind == arch.Enabled:
		code = append(code, arch.Insn{Code: xorEAX, Text: "xorl %eax, %eax"})
	}
	return append(code, returns...)
}

// ret returns, through a thunk if it has a name. int3 keeps the processor from speculating
// past a return.
func (m *Mode) ret(thunk string) []arch.Insn {
	if thunk == "" {
		return []arch.Insn{{Code: []byte{OpRet}, Text: "ret"}, {Code: []byte{OpInt3}, Text: "int3"}}
	}
	r := m.Distance(1)
	return []arch.Insn{{Code: m.branch(OpJmp), Text: "jmp", Symbol: thunk, Reloc: &r}}
}

package arm

import "sdtconvert/arch"

// Stub returns, after it has set the result where there is one. It is of A32, in which
// assemblers begin, and bx lr returns to either instruction set.
func (m Machine) Stub(s arch.Stub) []arch.Insn {
	var code []arch.Insn
	switch {
	case s.Semaphore != "":
		code = m.load(s.Semaphore)
	case s.Kind == arch.Enabled:
		code = []arch.Insn{{Code: m.order.a32(zero), Text: "mov r0, #0"}}
	}
	code = append(code, arch.Insn{Code: m.order.a32(ret), Text: "bx lr"})
	code[0].Text = ".arm; " + code[0].Text // compilers may have it begin in Thumb
	return code
}

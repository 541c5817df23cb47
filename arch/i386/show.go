package i386

// Disassemble shows code in GNU syntax.
func (Machine) Disassemble(code []byte, pc uint64) []string { return mode.Disassemble(code, pc) }

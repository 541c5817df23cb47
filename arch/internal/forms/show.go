package forms

import "sync"

// decoder guards the decoders of golang.org/x/arch, which write package-level variables.
var decoder sync.Mutex

// Disassemble shows code, a string for each instruction or piece of data that show shows the first n
// bytes as. What is left at the end, less than step bytes, is not shown.
func Disassemble(code []byte, step int, show func(code []byte) (text string, n int)) (out []string) {
	decoder.Lock()
	defer decoder.Unlock()
	for len(code) >= step {
		text, n := show(code)
		out = append(out, text)
		code = code[n:]
	}
	return out
}

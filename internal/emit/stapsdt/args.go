package stapsdt

import (
	"debug/elf"
	"fmt"
	"strings"

	"sdtconvert/arch"
)

// Type is what a note says of an argument's type.
type Type struct {
	Size   int // bytes: 1, 2, 4 or 8; 0 for what is in no register of integers
	Signed bool
}

// Operands writes arguments as a note has them: where each is at a site of a form, in
// an object with data as its byte order. From the first on that the machine cannot tell
// the place of they are left out, for the number of one behind it would be wrong.
func Operands(m arch.Machine, form arch.Form, data elf.Data, types []Type) string {
	sizes := make([]int, len(types))
	for i, t := range types {
		sizes[i] = t.Size
	}
	ops := m.Traits().Operands(form, data, sizes)
	for i, place := range ops {
		size := sizes[i]
		if types[i].Signed {
			size = -size
		}
		ops[i] = fmt.Sprintf("%d@%s", size, place)
	}
	return strings.Join(ops, " ")
}

// Words are as many words as there are registers: the arguments of a stub of
// which nothing is known.
func Words(m arch.Machine) []Type {
	types := make([]Type, len(m.Traits().Arguments.Registers))
	for i := range types {
		types[i].Size = m.Traits().WordSize()
	}
	return types
}

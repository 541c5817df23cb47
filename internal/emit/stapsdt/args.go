package stapsdt

import (
	"fmt"
	"math/bits"
	"strings"

	"sdtconvert/arch"
)

// Type is what a note says of an argument's type.
type Type struct {
	Size   int // bytes: 1, 2, 4 or 8; 0 for what is in no register of integers
	Signed bool
}

// Operands writes arguments as a note has them: where each is at the call.
// Those for which there is no register are left out: a tail call has them
// elsewhere than a call. So is all that follows an argument of another kind, for
// its number would be wrong.
func Operands(m arch.Machine, types []Type) string {
	regs := m.Traits().Arguments
	var ops []string
	for i, t := range types[:min(len(types), len(regs))] {
		size := t.Size
		if size == 0 {
			break
		}
		if t.Signed {
			size = -size
		}
		ops = append(ops, fmt.Sprintf("%d@%s", size, regs[i][bits.TrailingZeros(uint(t.Size))]))
	}
	return strings.Join(ops, " ")
}

// Words are as many words as there are registers: the arguments of a stub of
// which nothing is known.
func Words(m arch.Machine, word int) []Type {
	types := make([]Type, len(m.Traits().Arguments))
	for i := range types {
		types[i].Size = word
	}
	return types
}

package arch

import (
	"debug/elf"
	"fmt"
	"math/bits"
	"regexp"
	"sync"
)

// Arguments say where a function's arguments are that are integers or pointers, when
// it is called.
type Arguments struct {
	Registers []Register // of the first ones
	Stack     *Stack     // of those behind them; nil where they are not told
	// NumericRegisters reports that assemblers call registers by numbers alone, so that tools that
	// do not know the machine read one as a constant.
	NumericRegisters bool
	// Rename returns the name that tracers read of a register, for one that a compiler writes,
	// and other words as they are. nil if compilers write what tracers read.
	Rename func(word string) string
	// Unread returns a tracer that does not read an operand of a note, without its size, and "" if
	// all read it.
	Unread func(place string) (tracer string)
}

// UnreadUnless returns an Unread that names a tracer, unless the operand is one of a pattern's.
func UnreadUnless(tracer, pattern string) func(place string) string {
	read := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) })
	return func(place string) string {
		if read().MatchString(place) {
			return ""
		}
		return tracer
	}
}

// words matches the names and numbers of operands in assembler. It is compiled when it is first
// asked for: few runs need it.
var words = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\w$.]+`) })

// Words returns the names and numbers of an operand.
func Words(place string) []string { return words().FindAllString(place, -1) }

// AsTracersRead writes operands with the names of registers that tracers read.
func (a *Arguments) AsTracersRead(operands string) string {
	if a.Rename == nil {
		return operands
	}
	return words().ReplaceAllStringFunc(operands, a.Rename)
}

// Register holds the names, in assembler, of the lowest 1, 2, 4 and 8 bytes of
// a register. A name that is "" is of more than a register.
type Register [4]string

// Registers makes registers whose parts are named as they are.
func Registers(names ...string) []Register {
	regs := make([]Register, len(names))
	for i, name := range names {
		regs[i] = Register{name, name, name, name}
	}
	return regs
}

// Stack is where arguments in memory are, a word or more for each. Where the bytes of
// words are big-endian, a narrow one is in the last bytes of its word.
type Stack struct {
	Operand string // in assembler, with %d for the offset in bytes
	// Call and Tail are the offsets of the first one at the site of a call, and of a
	// tail call: some machines push the return address.
	Call, Tail int
	// Aligned reports that arguments of more than a word are aligned to their size.
	Aligned bool
}

// Operands returns where arguments of the given sizes in bytes are at a site of a form,
// in assembler, in an object whose header has data as its byte order. It ends before
// the first whose place it does not know: one of size 0, which is not an integer, or
// one that takes several registers.
func (t *Traits) Operands(form Form, data elf.Data, sizes []int) []string {
	var ops []string
	regs, slot := t.Arguments.Registers, 0
	for _, size := range sizes {
		switch {
		case size == 0:
			return ops
		case len(regs) > 0:
			name := regs[0][bits.TrailingZeros(uint(size))]
			if name == "" {
				return ops
			}
			ops, regs = append(ops, name), regs[1:]
		case t.Arguments.Stack != nil:
			if t.Arguments.Stack.Aligned {
				slot = (slot + size - 1) &^ (size - 1)
			}
			ops = append(ops, t.onStack(form, data, slot, size))
			slot += max(size, t.WordSize())
		default:
			return ops
		}
	}
	return ops
}

// onStack returns the operand of an argument that has its slot some bytes behind the
// first.
func (t *Traits) onStack(form Form, data elf.Data, slot, size int) string {
	off := slot + t.Arguments.Stack.Tail
	if form == Call {
		off = slot + t.Arguments.Stack.Call
	}
	if data == elf.ELFDATA2MSB {
		off += max(0, t.WordSize()-size) // the last bytes of a word are its lowest
	}
	return fmt.Sprintf(t.Arguments.Stack.Operand, off)
}

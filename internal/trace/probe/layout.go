package probe

import "sdtconvert/arch"

// TextBytes is how much of a text is copied when a probe fires.
const TextBytes = 128

// MinimumEvent is the least size of an event, in bytes.
const MinimumEvent = 64

const wordBytes = 8

// Layout says where in an event the words of a site's arguments are.
type Layout struct {
	Arguments []arch.TracedArgument
	Size      uint32 // bytes of an event: 64, 128, or a multiple of 64
	HasTexts  bool   // or arguments in memory that may not be there
	// HasTypeNames reports that an argument describes a type.
	HasTypeNames bool
}

// NewLayout lays out the arguments. sp is the offset of the stack pointer: memory that is found by another register, or the thread pointer, may not be there.
func NewLayout(arguments []Argument, sp int) Layout {
	l := Layout{}
	size := uint32(arch.EventArguments + wordBytes*len(arguments))
	for i, a := range arguments {
		t := arch.TracedArgument{Operand: a.Operand, At: uint32(arch.EventArguments + wordBytes*i)}
		if a.Format == Unreadable {
			t.Operand = arch.Operand{Kind: arch.Constant, Size: wordBytes}
		}
		t.MayFault = a.Kind == arch.InMemory && (a.Base >= 0 && a.Base != sp || a.Index >= 0 || a.Thread)
		if a.Format == Text {
			t.Copy = TextBytes
		}
		l.HasTypeNames = l.HasTypeNames || a.Format == TypeName
		if t.MayFault || t.Copy > 0 {
			l.HasTexts, t.CopyAt = true, size
			size += wordBytes + (t.Copy+wordBytes-1)&^(wordBytes-1)
		}
		l.Arguments = append(l.Arguments, t)
	}
	if l.Size = MinimumEvent; size > l.Size {
		l.Size = (size + 63) &^ 63
	}
	return l
}

package x86

import "sdtconvert/arch"

// Unread returns a function that returns gdb for an operand which gdb does not read, and "" for others. gdb reads
// constants, registers that match a pattern, and memory that general registers of a size (r or e) lead to: no name
// of a symbol, and no segment.
func Unread(registers, size string) func(place string) (tracer string) {
	base := `%` + size + `\w+`
	return arch.UnreadUnless("gdb", `\$-?\d+|%(?:`+registers+`)|(?:-?\d+(?:[+-]\d+[+-]\d+)?)?\((?:`+base+`)?(?:,`+base+`(?:,[1248])?)?\)`)
}

package elfreloc

import (
	"debug/elf"
	"strings"
)

// EachMapping calls f for each mapping symbol, in the order of the symbols: section and
// off are its place, and from there on the section holds what the letter says. letters
// are those that the machine's assemblers use; without any nothing is read.
//
// A mapping symbol is local, of no type, and named $ and its letter, with ".suffix"
// behind it or not (ELF for the Arm Architecture, 5.5.5; ELF for the Arm 64-bit
// Architecture, 5.5.4). On RISC-V the name of an instruction set may stand between
// the two (RISC-V ELF psABI, "Mapping Symbol").
func (o *Object) EachMapping(letters string, f func(section int, off uint64, letter byte)) error {
	if letters == "" {
		return nil
	}
	syms, err := o.Symbols()
	if err != nil {
		return err
	}
	for i := 1; i < syms.firstGlobal; i++ {
		// Most symbols are none, so the whole table is gone through for one byte each.
		name := syms.nameOffset(i)
		if int(name) >= len(syms.strings) || syms.strings[name] != '$' {
			continue
		}
		letter := mappingLetter(syms.strings[name:])
		if letter == 0 || strings.IndexByte(letters, letter) < 0 {
			continue
		}
		if s := syms.At(i); s.Type == elf.STT_NOTYPE {
			f(s.Section, s.Value, letter)
		}
	}
	return nil
}

// mappingLetter returns the letter of a mapping symbol, whose name begins rest, or 0
// for another symbol.
func mappingLetter(rest string) byte {
	if len(rest) < 3 {
		return 0
	}
	behind := rest[2:]
	if behind[0] == 0 || behind[0] == '.' || rest[1] == 'x' && strings.HasPrefix(behind, "rv") {
		return rest[1]
	}
	return 0
}

package input

import (
	"debug/elf"
	"encoding/binary"
	"strings"
)

// Target is what an ELF file is made for.
type Target struct {
	Class   elf.Class
	Data    elf.Data
	Machine elf.Machine
}

// identSize is how many bytes begin headers of either class alike: e_ident, e_type and
// e_machine (gABI, "ELF Header").
const identSize = elf.EI_NIDENT + 4

// Ident returns what the first bytes of an ELF file say, and reads no others. ok
// is false for another file, and for an unknown kind.
func (s *Source) Ident() (target Target, typ elf.Type, ok bool) {
	head := make([]byte, identSize)
	if s.err != nil {
		return target, 0, false
	}
	if n, _ := s.ReadAt(head, 0); n < len(head) || !strings.HasPrefix(string(head), elf.ELFMAG) || elf.Version(head[elf.EI_VERSION]) != elf.EV_CURRENT {
		return target, 0, false
	}
	target.Class, target.Data = elf.Class(head[elf.EI_CLASS]), elf.Data(head[elf.EI_DATA])
	var order binary.ByteOrder
	switch target.Data {
	case elf.ELFDATA2LSB:
		order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		order = binary.BigEndian
	default:
		return Target{}, 0, false
	}
	target.Machine = elf.Machine(order.Uint16(head[elf.EI_NIDENT+2:]))
	return target, elf.Type(order.Uint16(head[elf.EI_NIDENT:])), true
}

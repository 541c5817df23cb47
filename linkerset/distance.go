package linkerset

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// AddDistance adds the relocations of a field of 32 bits, at an offset of a section,
// that holds the distance from itself to something. Where the section's relocations are
// SHT_REL, the field has to hold the addend.
func AddDistance(e *elfreloc.Edit, m arch.Machine, sec int, off uint64, to Ref) error {
	for _, rel := range m.Traits().Relative {
		r := elfreloc.Relocation{Offset: off, Sym: to.Sym, Type: rel.Type, Addend: to.Addend}
		if rel.Sub {
			r.Sym, r.Addend = addField(e, sec, off), 0
		}
		if err := e.AddRelocation(sec, r); err != nil {
			return err
		}
	}
	return nil
}

// addField makes a symbol at a field. What is subtracted must have no addend, and
// get none when `ld -r` merges sections: on RISC-V GNU ld adds it.
func addField(e *elfreloc.Edit, sec int, off uint64) uint32 {
	return e.AddSymbol(elfreloc.Symbol{Name: ".Lsdt_field", Bind: elf.STB_LOCAL, Section: sec, Value: off})
}

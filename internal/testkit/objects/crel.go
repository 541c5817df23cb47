package objects

import (
	"debug/elf"
	"math/big"

	"sdtconvert/elfreloc"
)

// CREL is SHT_CREL, LLVM's compact relocations.
const CREL elf.SectionType = 0x40000014

// DecodeCREL decodes a sound SHT_CREL section by its description alone, with integers
// of any size: the flags and the difference of offsets are one ULEB128.
func DecodeCREL(class elf.Class, data []byte) []elfreloc.Relocation {
	leb := func(signed bool) *big.Int {
		v, shift := new(big.Int), uint(0)
		for {
			b := data[0]
			data = data[1:]
			v.Or(v, new(big.Int).Lsh(big.NewInt(int64(b&0x7f)), shift))
			if shift += 7; b < 0x80 {
				if signed && b&0x40 != 0 {
					v.Sub(v, new(big.Int).Lsh(big.NewInt(1), shift))
				}
				return v
			}
		}
	}
	wrap := func(v *big.Int, bits uint) uint64 {
		return new(big.Int).And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1))).Uint64()
	}
	word := uint(64)
	if class == elf.ELFCLASS32 {
		word = 32
	}
	header := leb(false).Uint64()
	flags := uint(2 + header>>2&1)
	var out []elfreloc.Relocation
	off, sym, typ, addend := new(big.Int), new(big.Int), new(big.Int), new(big.Int)
	for range header >> 3 {
		first := leb(false)
		off.Add(off, new(big.Int).Lsh(new(big.Int).Rsh(first, flags), uint(header&3)))
		for i, sum := range []*big.Int{sym, typ, addend}[:flags] {
			if first.Bit(i) != 0 {
				sum.Add(sum, leb(true))
			}
		}
		r := elfreloc.Relocation{
			Offset: wrap(off, word), Sym: uint32(wrap(sym, 32)), Type: uint32(wrap(typ, 32)),
			Addend: int64(wrap(addend, word)), Implicit: flags == 2,
		}
		if word == 32 {
			r.Addend = int64(int32(r.Addend))
		}
		out = append(out, r)
	}
	return out
}

package riscv64

import (
	"debug/elf"
	"slices"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Sites are aligned as compressed instructions are.
func TestDecodeBehindACompressedInstruction(t *testing.T) {
	code := []byte{0x97, 0, 0, 0, 0xe7, 0x80, 0, 0}
	text := arch.Text{Code: slices.Concat([]byte{0x01, 0x00}, code), Start: 0x100}
	got, err := Machine{}.Decode(text, []elfreloc.Relocation{{Offset: 0x102, Type: uint32(elf.R_RISCV_CALL_PLT)}})
	if err != nil || got.Offset != 0x102 || got.Form != arch.Call || !slices.Equal(got.Code, code) {
		t.Errorf("%+v, %v", got, err)
	}
}

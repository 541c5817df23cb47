package amd64

import (
	"debug/elf"
	"errors"
	"testing"

	"sdtconvert/arch"
)

func TestDecodeRefusesWhatIsNoCall(t *testing.T) {
	const direct = "; call the stub directly, and do not take its address"
	const noPLT = "; compile without -fno-plt, or in Rust with -C relro-level=partial" + direct
	const large = "; compile without -mcmodel=large"
	for _, c := range []struct {
		name   string
		typ    elf.R_X86_64
		code   string // the relocated field is its last four bytes
		addend int64
		want   string
	}{
		{"lea", elf.R_X86_64_PC32, "48 8d 3d 00 00 00 00", -4, "got no call and no jump but bytes 48 8d 3d" + direct},
		{"setcc", elf.R_X86_64_PC32, "0f 94 05 00 00 00 00", -4, "got no call and no jump but bytes 0f 94 05" + direct},
		{"load from the GOT", elf.R_X86_64_REX_GOTPCRELX, "48 8b 05 00 00 00 00", -4,
			"got a load of the stub's address from the GOT, bytes 48 8b 05" + noPLT},
		{"push from the GOT", elf.R_X86_64_GOTPCREL, "ff 35 00 00 00 00", -4,
			"got a load of the stub's address from the GOT, bytes ff 35" + noPLT},
		{"far call through the GOT", elf.R_X86_64_GOTPCREL, "ff 1d 00 00 00 00", -4,
			"got a load of the stub's address from the GOT, bytes ff 1d" + noPLT},
		{"call behind the stub", elf.R_X86_64_PLT32, "e8 00 00 00 00", 0, "got a call or jump to the stub+4" + direct},
		{"call before the stub", elf.R_X86_64_PLT32, "e8 00 00 00 00", -5, "got a call or jump to the stub-1" + direct},
		{"call through a slot behind the stub's", elf.R_X86_64_GOTPCRELX, "ff 15 00 00 00 00", 4, "got a call or jump to the stub+8" + direct},
		{"field without an instruction", elf.R_X86_64_PLT32, "00 00 00 00", -4, "got no call and no jump but no bytes before the field" + direct},
		{"call in the large code model", elf.R_X86_64_PLTOFF64, "48 b8 00 00 00 00", 0,
			"got a call through a register, as the large code model makes" + large},
		{"GOT entry in the large code model", elf.R_X86_64_GOT64, "48 b8 00 00 00 00", 0,
			"got a call through a register, as the large code model makes" + large},
		{"absolute address", elf.R_X86_64_64, "48 b8 00 00 00 00", 0, "got an absolute address" + large + direct},
		{"short address", elf.R_X86_64_32, "bf 00 00 00 00", 0, "got no call and no jump" + direct},
		{"short jump", elf.R_X86_64_PC8, "eb 00 00 00 00", -1, "got no call and no jump" + direct},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := unhex(t, c.code)
			r := arch.Reloc{Offset: 0x80 + uint64(len(code)) - 4, Type: uint32(c.typ), Addend: c.addend}
			_, err := Machine{}.Decode(arch.Text{Code: code, Start: 0x80}, []arch.Reloc{r})
			wantRefusal(t, err, c.want)
		})
	}
}

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.As(err, new(*arch.Refusal)) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if err.Error() != want {
		t.Errorf("got  %q\nwant %q", err, want)
	}
}

func TestDecodeRefusesASecondRelocation(t *testing.T) {
	relocs := []arch.Reloc{
		{Offset: 1, Type: uint32(elf.R_X86_64_PLT32), Addend: -4},
		{Offset: 1, Type: uint32(elf.R_X86_64_PC32), Addend: -4},
	}
	_, err := Machine{}.Decode(arch.Text{Code: unhex(t, "e8 00 00 00 00")}, relocs)
	wantRefusal(t, err, "got a second relocation, R_X86_64_PC32, at the same place")
}

// A site may begin with the section and end with it, and may not reach over.
func TestDecodeAtTheEndsOfASection(t *testing.T) {
	for _, f := range allForms() {
		code := unhex(t, f.code)
		if _, err := (Machine{}).Decode(arch.Text{Code: code}, f.relocs(code, 0)); err != nil {
			t.Errorf("%s alone in its section: %v", f.name, err)
		}
		if _, err := (Machine{}).Decode(arch.Text{Code: code[:len(code)-1]}, f.relocs(code, 0)); err == nil {
			t.Errorf("%s is accepted with its last byte cut off", f.name)
		}
		if _, err := (Machine{}).Decode(arch.Text{Code: code[1:]}, f.relocs(code[1:], 0)); err == nil {
			t.Errorf("%s is accepted with its first byte cut off", f.name)
		}
	}
}

func TestDecodeSurvivesAnyOffset(t *testing.T) {
	for _, off := range []uint64{0, 1, 2, 6, 1 << 63, ^uint64(0) - 1, ^uint64(0)} {
		for _, typ := range []elf.R_X86_64{elf.R_X86_64_PLT32, elf.R_X86_64_GOTPCRELX} {
			r := arch.Reloc{Offset: off, Type: uint32(typ), Addend: -4}
			if _, err := (Machine{}).Decode(arch.Text{Code: []byte{0xe8, 0, 0, 0}}, []arch.Reloc{r}); err == nil {
				t.Errorf("%v at %#x of a section of 4 bytes is a call", typ, off)
			}
		}
	}
}

func TestDisableRefusesALengthThatHasNoForm(t *testing.T) {
	_, err := Machine{}.Disable(arch.Site{Form: arch.CondTail, Code: make([]byte, 5)}, arch.Probe, arch.Env{})
	wantRefusal(t, err, "got a cond-tail of 5 bytes")
	_, err = Machine{}.Disable(arch.Site{Form: arch.Call, Code: make([]byte, 7)}, arch.Enabled, arch.Env{})
	wantRefusal(t, err, "got an isenabled of 7 bytes")
	_, err = Machine{}.Disable(arch.Site{Form: arch.Call, Code: make([]byte, 1)}, arch.Probe, arch.Env{})
	wantRefusal(t, err, "got a call of 1 bytes")
}

func TestDisableRefusesShortTailsThatHaveToReturnOtherwise(t *testing.T) {
	site := arch.Site{Form: arch.Tail, Register: true, Code: []byte{0xff, 0xe0}}
	_, err := Machine{}.Disable(site, arch.Enabled, arch.Env{})
	wantRefusal(t, err, "got an isenabled-tail through a register, of 2 bytes, which are too few; compile with -fno-optimize-sibling-calls")
	_, err = Machine{}.Disable(site, arch.Probe, thunked)
	wantRefusal(t, err, "got a tail through a register, of 2 bytes, which are too few; compile with -fno-optimize-sibling-calls")
	site = arch.Site{Form: arch.Call, Register: true, Code: []byte{0x42, 0xff, 0x54, 0x25, 0}}
	_, err = Machine{}.Disable(site, arch.Enabled, arch.Env{Semaphore: 4})
	wantRefusal(t, err, "got an isenabled through a register, which has no room to load a semaphore; compile without -mcmodel=large")
}

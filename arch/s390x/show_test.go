package s390x

import (
	"debug/elf"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/arch/s390x/s390xasm"

	"sdtconvert/arch"
)

// As objdump has them, but for spaces and jgnop's operand.
func TestDisassemble(t *testing.T) {
	code := []byte("\xc0\xe5\x00\x00\x00\x08\xc0\x64\x00\x00\x00\x10\xc0\x34\xff\xff\xff\xff\xa7\x54\x00\x03\xa7\xc4\x00\x03" +
		"\xa7\x74\x00\x03\xa7\xf4\x00\x03\x07\xfe\x07\x00\xa7\x29\x00\x00\xc4\x22\x00\x00\x00\x04")
	want := []string{
		"brasl %r14,0x1010", "jglh 0x1026", "jgnle 0x100a", "jnhe 0x1018", "jle 0x101c",
		"jne 0x1020", "j 0x1024", "br %r14", "nopr %r0", "lghi %r2,0", "llhrl %r2,0x1032",
	}
	if diff := cmp.Diff(want, Machine{}.Disassemble(code, 0x1000)); diff != "" {
		t.Error(diff)
	}
}

func TestDisassembleShowsWhatIsNoInstructionAsData(t *testing.T) {
	code := []byte("\x07\xfe\x00\x00\xff\xff\xff\xff\xff\xff\x07\xfe\xc0\xe5\x00\x00\x07")
	want := []string{"br %r14", ".short 0x0000", ".short 0xffff,0xffff,0xffff", "br %r14", ".short 0xc0e5", ".short 0x0000"}
	if diff := cmp.Diff(want, Machine{}.Disassemble(code, 0)); diff != "" {
		t.Error(diff)
	}
}

// The decoder of golang.org/x/arch shows the same, but for conditions that it has no
// mnemonics for.
func TestDisassembleIsThatOfOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shown := 0
	for range 200_000 {
		code := []byte{[...]byte{0x07, 0x0d, 0xa7, 0xc0, 0xc4, byte(r.Uint32())}[r.IntN(6)], byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())}
		code = code[:length(code[0])]
		got := strings.Join(Machine{}.Disassemble(code, 0x1000), "; ")
		if strings.HasPrefix(got, ".short") {
			continue
		}
		inst, err := s390xasm.Decode(code)
		if err != nil {
			t.Fatalf("% x is %s, and to others %v", code, got, err)
		}
		want := s390xasm.GNUSyntax(inst, 0x1000)
		if name, _, _ := strings.Cut(want, " "); name == "brc" || name == "brcl" || name == "bcr" || strings.Contains(want, "0xffffffff") {
			continue
		}
		if shown++; got != want {
			t.Fatalf("% x is %s, and to others %s", code, got, want)
		}
	}
	if shown < 1000 {
		t.Errorf("%d instructions were compared", shown)
	}
}

func TestDataRelocations(t *testing.T) {
	for typ, want := range map[elf.R_390]arch.DataReloc{
		elf.R_390_64: {Size: 8}, elf.R_390_32: {Size: 4}, elf.R_390_PLT32DBL: {},
	} {
		if got := (Machine{}).DataReloc(uint32(typ)); got != want {
			t.Errorf("%v: got %+v, want %+v", typ, got, want)
		}
	}
}

package s390x

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/s390x/s390xasm"
)

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

package s390x

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/s390x/s390xasm"
)

// branches are the mnemonics of GNU that the decoder of golang.org/x/arch lacks.
var branches = strings.NewReplacer(
	"bcr 3,", "bnler ", "bcr 5,", "bnher ", "bcr 6,", "blhr ", "bcr 9,", "bnlhr ", "bcr 10,", "bher ", "bcr 12,", "bler ",
	"brc 3,", "jnle ", "brc 5,", "jnhe ", "brc 6,", "jlh ", "brc 9,", "jnlh ", "brc 10,", "jhe ", "brc 12,", "jle ",
	"brcl 3,", "jgnle ", "brcl 5,", "jgnhe ", "brcl 6,", "jglh ", "brcl 9,", "jgnlh ", "brcl 10,", "jghe ", "brcl 12,", "jgle ",
)

// The decoder of golang.org/x/arch shows the same.
func TestDisassembleIsThatOfOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	heads := []byte{0xc0, 0xc4, 0xa7, 0x07}
	shown := map[string]int{}
	for range 200_000 {
		code := make([]byte, 6)
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		code[0] = heads[r.IntN(len(heads))]
		code = code[:length(code[0])]
		got := show(code, 0x100000000)
		if strings.HasPrefix(got, ".short") {
			continue
		}
		inst, err := s390xasm.Decode(code)
		if err != nil {
			t.Fatalf("% x is %s, and to others %v", code, got, err)
		}
		if want := branches.Replace(s390xasm.GNUSyntax(inst, 0x100000000)); got != want {
			t.Fatalf("% x is %s, and to others %s", code, got, want)
		}
		name, _, _ := strings.Cut(got, " ")
		shown[name]++
	}
	if len(shown) < 40 {
		t.Errorf("%v were compared", shown)
	}
}

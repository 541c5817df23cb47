package product

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// TestCover makes random products, with holes, and looks at each pair by itself.
func TestCover(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		rows := randomProduct(r)
		kept := make([]bool, len(rows))
		for i := range kept {
			kept[i] = r.IntN(20) == 0
		}
		for strength := range 3 {
			chosen := Cover(rows, kept, strength)
			for i := range rows {
				if (kept[i] || strength == 0) && !chosen[i] {
					t.Fatalf("row %d is left out", i)
				}
			}
			wantCovered(t, rows, chosen, max(strength, 1))
		}
	}
}

// randomProduct makes a product of 1 to 5 dimensions without some of its rows.
func randomProduct(r *rand.Rand) [][]string {
	rows := [][]string{nil}
	for d := range 1 + r.IntN(5) {
		var next [][]string
		values := 1 + r.IntN(4)
		for _, row := range rows {
			for v := range values {
				next = append(next, append(row[:len(row):len(row)], fmt.Sprintf("%d.%d", d, v)))
			}
		}
		rows = next
	}
	var left [][]string
	for _, row := range rows {
		if r.IntN(4) > 0 {
			left = append(left, row)
		}
	}
	return left
}

func wantCovered(t *testing.T, rows [][]string, chosen []bool, strength int) {
	t.Helper()
	for _, row := range rows {
		for a := range row {
			for b := a; b < len(row); b++ {
				if b > a && strength == 1 {
					continue
				}
				if !occurs(rows, chosen, a, row[a], b, row[b]) {
					t.Fatalf("%s does not meet %s in any row that was chosen", row[a], row[b])
				}
			}
		}
	}
}

func occurs(rows [][]string, chosen []bool, a int, va string, b int, vb string) bool {
	for i, row := range rows {
		if chosen[i] && row[a] == va && row[b] == vb {
			return true
		}
	}
	return false
}

// A full product of ten machines, five linkers, four modes and three layouts takes at
// most twice the fewest rows that have all its pairs, ten times five.
func TestCoverIsSmall(t *testing.T) {
	var rows [][]string
	for m := range 10 {
		for l := range 5 {
			for md := range 4 {
				for lay := range 3 {
					rows = append(rows, []string{fmt.Sprint(m), fmt.Sprint(l), fmt.Sprint(md), fmt.Sprint(lay)})
				}
			}
		}
	}
	n := 0
	for _, c := range Cover(rows, make([]bool, len(rows)), 2) {
		if c {
			n++
		}
	}
	if n > 100 {
		t.Errorf("%d rows of %d", n, len(rows))
	}
	t.Logf("%d rows of %d", n, len(rows))
}

// TestSome: each element of a list is chosen for some name, none twice for one.
func TestSome(t *testing.T) {
	list := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	seen := map[int]bool{}
	for i := range 40 {
		once := map[int]bool{}
		chosen := Some(fmt.Sprint("Test", i), list, 4)
		for _, v := range chosen {
			seen[v], once[v] = true, true
		}
		expect.Equal(t, len(once), len(chosen), "different ones of %v", chosen)
	}
	expect.Equal(t, len(list), len(seen), "ones that are chosen")
}

// TestLine counts the pairs and triples of a small product by hand.
func TestLine(t *testing.T) {
	p := New("machine", "linker", "mode")
	p.Short = 1
	for _, row := range []string{"amd64 bfd pie", "amd64 bfd exe", "amd64 lld pie", "amd64 lld exe", "arm bfd pie", "arm lld exe"} {
		p.Add(row, strings.Fields(row), nil)
	}
	p.Always("arm bfd shared", []string{"arm", "bfd", "shared"}, nil)
	p.AddToWhole("arm gold pie", []string{"arm", "gold", "pie"}, nil)
	// Pairs: machine and linker 4, machine and mode 5, linker and mode 5. The array needs the
	// rows of amd64, which are all of those with `bfd exe` and `lld pie`, but one of `bfd pie`
	// and `lld exe` each, of which arm has the only ones.
	want := "TestLine | machine:2, linker:3, mode:3 | 8 | 5 | 2 | 1 | 14 | 14 | 7 | 5"
	expect.Equal(t, want, strings.Join(p.line(t, "TestLine", p.usual(), p.short("TestLine")), " | "))
	// Without its pairs a usual run needs bfd, which `arm bfd shared` is, and amd64, lld, pie
	// and exe, for which two rows do.
	p.Singly = true
	want = "TestLine | machine:2, linker:3, mode:3 | 8 | 3 | 2 | 1 | 14 | 9 | 7 | 3"
	expect.Equal(t, want, strings.Join(p.line(t, "TestLine", p.usual(), p.short("TestLine")), " | "))
	expect.Equal(t, "machine=amd64, linker=bfd, mode=exe", p.describe(1))
}

package product

import (
	"fmt"
	"math/rand/v2"
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

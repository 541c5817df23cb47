package product

import (
	"fmt"
	"math/rand/v2"
	"testing"
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

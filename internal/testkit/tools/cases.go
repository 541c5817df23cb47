package tools

import (
	"os"
	"strconv"
	"testing"
)

// Cases returns how many random cases a test compares: usual, a tenth of it in a run with
// -short, or the number in the environment variable SDTCONVERT_ATTACK.
func Cases(t testing.TB, usual int) int {
	t.Helper()
	text := os.Getenv("SDTCONVERT_ATTACK")
	switch {
	case text == "" && testing.Short():
		return (usual + 9) / 10
	case text == "":
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SDTCONVERT_ATTACK is %q: want a number of cases", text)
	}
	return n
}

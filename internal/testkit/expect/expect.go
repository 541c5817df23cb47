// Package expect fails tests for errors and for values that differ.
package expect

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// OK ends a test for an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal fails a test, which goes on, if a value is not the wanted one. The words are a format
// with its values, which say what was compared; there may be none.
func Equal(t testing.TB, want, got any, words ...any) {
	t.Helper()
	diff := cmp.Diff(want, got)
	if diff == "" {
		return
	}
	if len(words) > 0 {
		diff = fmt.Sprintf(words[0].(string), words[1:]...) + ": " + diff
	}
	t.Error(diff)
}

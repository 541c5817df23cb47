package ld

import (
	"slices"
	"strings"
	"testing"
)

func TestLiteralWords(t *testing.T) {
	words := strings.Fields(".text ./a.o ../b.o a/b c.o *.o [ab].o d? KEEP . .data.rel / /x")
	want := strings.Fields("./a.o ../b.o a/b c.o / /x")
	if got := literal(words); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

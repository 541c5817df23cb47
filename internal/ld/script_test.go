package ld

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func TestLiteralWords(t *testing.T) {
	words := strings.Fields(".text ./a.o ../b.o a/b c.o *.o [ab].o d? KEEP . .data.rel / /x")
	want := strings.Fields("./a.o ../b.o a/b c.o / /x")
	expect.Equal(t, want, literal(words))
}

package ld

import "testing"

func TestDropPrerequisite(t *testing.T) {
	for in, want := range map[string]string{
		"out: a.o \\\n  /t/s.o \\\n  b.o\n\na.o:\n\n/t/s.o:\n\nb.o:\n": "out: a.o \\\n  b.o\n\na.o:\n\nb.o:\n", // GNU ld, gold, lld
		"out: a.o /t/s.o b.o\n\na.o:\n/t/s.o:\nb.o:\n":                 "out: a.o b.o\n\na.o:\nb.o:\n",         // mold
		"out: \\\n  a.o \\\n  /t/s.o\n\na.o:\n\n/t/s.o:\n":             "out: \\\n  a.o\n\na.o:\n",
		"out: a.o\n": "out: a.o\n",
	} {
		if got := string(dropPrerequisite([]byte(in), "/t/s.o")); got != want && got != want+"\n" {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

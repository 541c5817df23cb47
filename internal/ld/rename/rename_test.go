package rename

import (
	"bytes"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func names() *Names {
	n := New("/tmp/x1/")
	n.Add("/tmp/x1/w/a.o", "a.o")
	n.Add("/tmp/x1/w/a.out.o", "../a.out.o")
	n.Add("/tmp/x1/w/lib p.a", "lib p.a")
	n.Add("/tmp/x1/w/a.o", "second")
	return n
}

const (
	before = "ld: /tmp/x1/w/a.o: in /tmp/x1/w/a.out.o(x)/tmp/x1/w/a.ou /tmp/x1/other /tmp/x1 /tmp//tmp/x1/w/lib p.a:(m.o)\n/tmp/x1/w/a."
	after  = "ld: a.o: in ../a.out.o(x)a.ou /tmp/x1/other /tmp/x1 /tmp/lib p.a:(m.o)\n/tmp/x1/w/a."
)

// However text is cut into pieces, the same comes out.
func TestPieces(t *testing.T) {
	// "a.ou" after "a.o" is none of the names, and "a.o" is.
	want := strings.Replace(after, "(x)a.ou", "(x)a.ou", 1)
	for size := 1; size <= len(before); size++ {
		var out bytes.Buffer
		w := names().Writer(&out)
		for text := before; text != ""; {
			n := min(size, len(text))
			expect.Value(w.Write([]byte(text[:n])))(t)
			text = text[n:]
		}
		expect.OK(t, w.Close())
		if out.String() != want {
			t.Fatalf("in pieces of %d: %q, want %q", size, out.String(), want)
		}
	}
}

// Text that holds no name is not held back: a linker may show what it does.
func TestPrompt(t *testing.T) {
	var out bytes.Buffer
	w := names().Writer(&out)
	for _, text := range []string{"progress ", "50 % ", "/usr/lib "} {
		w.Write([]byte(text))
	}
	expect.Equal(t, "progress 50 % /usr/lib ", out.String())
}

func TestSpelled(t *testing.T) {
	escape := func(s string) string { return strings.ReplaceAll(s, " ", `\ `) }
	escaped := names().Respell(escape, escape)
	expect.Equal(t, `out: lib\ p.a`, string(escaped.Bytes([]byte(`out: /tmp/x1/w/lib\ p.a`))))
}

func FuzzPieces(f *testing.F) {
	f.Add(before, 3)
	f.Fuzz(func(t *testing.T, text string, size int) {
		var out bytes.Buffer
		w := names().Writer(&out)
		for rest := []byte(text); len(rest) > 0; {
			n := min(max(1, size), len(rest))
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
		if whole := names().Bytes([]byte(text)); !bytes.Equal(out.Bytes(), whole) {
			t.Errorf("%q in pieces of %d: %q, whole %q", text, size, out.Bytes(), whole)
		}
	})
}

package token

import (
	"strings"
	"testing"
)

// FuzzScanner reads any text. Each token is what stands at its place, and behind the one
// before it.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		"provider p { probe a(int x, char *); };", "#define f(x) /* a\n*/ x\n\"a\\\nb\" 'c\n1.5e+3 ... ## &&", "a\\\r\nb // c\\\nd", "/* x",
		"# 12 \"y.d\"\n\t#pragma D attributes A/B/C provider p name",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		starts := []int{0}
		for i := range len(text) {
			if text[i] == '\n' {
				starts = append(starts, i+1)
			}
		}
		end := 0
		for s := New("x.d", text); ; {
			tok, ok := s.Next()
			if !ok {
				return
			}
			if tok.Pos.Line < 1 || tok.Pos.Line > len(starts) || tok.Pos.Column < 1 {
				t.Fatalf("%+v is nowhere", tok)
			}
			at := starts[tok.Pos.Line-1] + tok.Pos.Column - 1
			if at < end || at > len(text) {
				t.Fatalf("%+v is at %d, before %d", tok, at, end)
			}
			switch tok.Kind {
			case Name, Number, Text, Sign:
				if tok.Text == "" || !strings.HasPrefix(text[at:], tok.Text) {
					t.Fatalf("%+v is not what stands there: %q", tok, text[at:])
				}
				end = at + len(tok.Text)
			case Directive:
				Marker(tok.Text)
				end = at + 1
			}
		}
	})
}

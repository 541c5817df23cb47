package provider

import (
	"fmt"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func allTokens(s *Scanner) (all []string) {
	for {
		t, ok := s.scan()
		if !ok {
			return all
		}
		all = append(all, fmt.Sprintf("%d:%d %d %s", t.Pos.Line, t.Pos.Column, t.Kind, t.Text))
	}
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a b_1", []string{"1:1 0 a", "1:3 0 b_1"}},
		{"1.5e+3x .5", []string{"1:1 1 1.5e+3x", "1:9 1 .5"}},
		{"a/* x\ny */b // c\nd", []string{"1:1 0 a", "2:5 0 b", "3:1 0 d"}},
		{"&&&=...", []string{"1:1 3 &&", "1:3 3 &", "1:4 3 =", "1:5 3 ..."}},
		{`"a\"b" 'c'`, []string{`1:1 2 "a\"b"`, "1:8 2 'c'"}},
		{"'abc\nd", []string{"1:1 5 this ' is not closed in its line", "2:1 0 d"}},
		{"a /* b", []string{"1:1 0 a", "1:3 5 this comment does not end"}},
		{"#define X /* a\n b */ Y // z\nc", []string{"1:1 4 define X   Y ", "3:1 0 c"}},
		{"# file: it's here\nx", []string{"1:1 4  file: it's here", "2:1 0 x"}},
		{"a # b", []string{"1:1 0 a", "1:3 3 #", "1:5 0 b"}},
		{"#if A \\\n B\r\nx", []string{"1:1 4 if A   B\r", "3:1 0 x"}},
		{"a\\\nb", []string{"1:1 0 a", "2:1 0 b"}},
	} {
		expect.Equal(t, c.want, allTokens(NewScanner("f", c.text)), "%q", c.text)
	}
}

func TestPlaces(t *testing.T) {
	s := NewScanner("f", "#\nx")
	s.scan()
	s.moveTo("g", 12)
	if x, _ := s.scan(); x.Pos != (Pos{"g", 12, 1}) {
		t.Errorf("got %v", x.Pos)
	}
}

func TestMarker(t *testing.T) {
	for _, c := range []struct {
		text, file string
		line       int
		ok         bool
	}{
		{` 12 "a b.d" 1 3`, "a b.d", 12, true},
		{` 1 "a\"b\\c\303\244.d" 2`, "a\"b\\cä.d", 1, true},
		{` 1 "a\q.d"`, `a\q.d`, 1, true},
		{` 1 "a`, "a", 1, true},
		{`line 3`, "", 3, true},
		{` file: x`, "", 0, false},
		{`line`, "", 0, false},
		{` 99999999999 "x"`, "", 0, false},
	} {
		if file, line, ok := lineMarker(c.text); file != c.file || line != c.line || ok != c.ok {
			t.Errorf("%q: %q, %d, %v", c.text, file, line, ok)
		}
	}
}

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
		for s := NewScanner("x.d", text); ; {
			tok, ok := s.scan()
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
			case NameToken, NumberToken, TextToken, SignToken:
				if tok.Text == "" || !strings.HasPrefix(text[at:], tok.Text) {
					t.Fatalf("%+v is not what stands there: %q", tok, text[at:])
				}
				end = at + len(tok.Text)
			case DirectiveToken:
				lineMarker(tok.Text)
				end = at + 1
			}
		}
	})
}

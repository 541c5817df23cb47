package cpp

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/provider/token"
)

// FuzzPreprocessor preprocesses any text, with two more that it may include. It ends with an
// error or without one, with the same tokens each time; and a text without directives and
// macros is what the scanner reads.
func FuzzPreprocessor(f *testing.F) {
	f.Add("#include \"a.h\"\n#if A > 1 && defined(B)\nB(1, x)\n#else\ny\n#endif", "#define A 2\n#define B(x, ...) #x x##1 __VA_ARGS__", "#pragma once", "A=3")
	f.Add("#include <b.h>\n#ifdef __GNUC__\n#elif 1 ? 2 : (3 / 0)\n#endif\n#line 3 \"z\"", "", "#include \"a.h\"", "F(q)=q q")
	f.Add("provider p { probe a(int); };", "#undef A\n#error x", "#ifndef B_H\n#define B_H\n#endif", "A")
	f.Fuzz(func(t *testing.T, text, a, b, definition string) {
		headers := map[string]string{"a.h": a, "b.h": b}
		o := Options{Folders: []string{"."}, Definitions: []Definition{{Text: definition}}, ReadFile: func(path string) (string, error) {
			text, ok := headers[path]
			if !ok {
				return "", fs.ErrNotExist
			}
			return text, nil
		}}
		first, err := all(New("x.d", text, o))
		again, errAgain := all(New("x.d", text, o))
		if !slices.Equal(first, again) || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Fatalf("other tokens the second time: %v, %v", err, errAgain)
		}
		if len(first) > len(text)+maxRead+maxExpanded {
			t.Fatalf("%d tokens", len(first))
		}
		o.Definitions = nil
		if strings.ContainsAny(text, "#_") {
			return
		}
		var want []token.Token
		for s := token.New("x.d", text); ; {
			tok, ok := s.Next()
			if !ok {
				break
			}
			want = append(want, tok)
		}
		if got, err := all(New("x.d", text, o)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
	})
}

func all(p *Preprocessor) (tokens []token.Token, err error) {
	for {
		t, ok := p.Next()
		if !ok {
			return tokens, p.Err()
		}
		tokens = append(tokens, t)
	}
}

package header

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/provider"
	"sdtconvert/internal/provider/token"
	"sdtconvert/internal/testkit/disk"
)

// FuzzWrite writes the headers of any providers that are free of faults: each macro is
// there once, and nothing in a remark, a string or a line that goes on gets out of it.
func FuzzWrite(f *testing.F) {
	names, err := filepath.Glob("../testdata/*.d")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		text := disk.Read(f, name)
		f.Add(string(text), filepath.Base(name))
	}
	f.Add("provider p { probe a(int (*f)(int), char x[3 + 4], struct s *const) : (int (*f)(int)); };", "a b.h")
	f.Fuzz(func(t *testing.T, text, name string) {
		file, err := provider.Parse(provider.NewLines("x.d", text))
		if err != nil {
			return
		}
		for _, form := range []Form{Notes, Shared, Stubs} {
			if len(provider.Check(file.Providers, form == Stubs)) > 0 {
				continue
			}
			data := Write(name, file.Providers, form)
			if clean := filepath.Base(name) == name && name != "." && name != ".."; clean && !bytes.Equal(data, Write("directory/"+name, file.Providers, form)) {
				t.Fatal("other bytes in another directory")
			}
			checkHeader(t, string(data), file.Providers)
		}
	})
}

// checkHeader reads a header as a preprocessor does.
func checkHeader(t *testing.T, text string, providers []*provider.Provider) {
	t.Helper()
	groups := 0
	defined := map[string]int{}
	for s := token.New("x.h", text); ; {
		tok, ok := s.Next()
		if !ok {
			break
		}
		words := strings.Fields(tok.Text)
		switch {
		case tok.Kind == token.Bad:
			t.Fatalf("%v: %s", tok.Pos, tok.Text)
		case tok.Kind != token.Directive:
		case words[0] == "define":
			name, _, _ := strings.Cut(words[1], "(")
			defined[name]++
		case words[0] == "if", words[0] == "ifdef", words[0] == "ifndef":
			groups++
		case words[0] == "endif":
			groups--
		case words[0] != "else" && words[0] != "elif" && words[0] != "undef" && words[0] != "error":
			t.Fatalf("%v: #%s", tok.Pos, tok.Text)
		}
	}
	if groups != 0 {
		t.Fatalf("%d conditions do not end", groups)
	}
	for _, p := range providers {
		for _, probe := range p.Probes {
			for _, macro := range []string{provider.Macro(p.Name, probe.Name), provider.MacroEnabled(p.Name, probe.Name)} {
				want := fmt.Sprintf("\n#define %s(", macro)
				if defined[macro] != 1 || strings.Count(text, want) != 1 {
					t.Fatalf("%s is defined %d times", macro, defined[macro])
				}
			}
		}
	}
}

package cpp

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"sdtconvert/internal/provider/token"
)

// preprocess returns the tokens of a text, separated by spaces.
func preprocess(text string, o Options, headers map[string]string) (string, error) {
	o.ReadFile = func(path string) (string, error) {
		text, ok := headers[path]
		if !ok {
			return "", fs.ErrNotExist
		}
		return text, nil
	}
	p := New("x.d", text, o)
	var all []string
	for {
		t, ok := p.Next()
		if !ok {
			return strings.Join(all, " "), p.Err()
		}
		if t.Kind == token.Directive {
			t.Text = "#" + t.Text
		}
		all = append(all, t.Text)
	}
}

func TestMacros(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"#define Oid unsigned int\nOid x", "unsigned int x"},
		{"#define a b\n#define b a\na b", "a b"},
		{"#define f(x) g x\nf(1) f (2) f", "g 1 g 2 f"},
		{"#define f() z\nf() f( )", "z z"},
		{"#define f(x, y) y x\nf(a, (b, c)) f(,)", "( b , c ) a"},
		{"#define f(x) #x\nf(a  \"b\") f()", `"a \"b\"" ""`},
		{"#define f(x, y) x##y\n#define ab z\nf(a, b) f(1, 2) f(, q) f(q,) f(,)", "z 12 q q"},
		{"#define f(x, y) a x##y##b\nf(,) f(c, d) f(, d)", "a b a cdb a db"},
		{"#define f(...) (__VA_ARGS__)\nf(a, b) f()", "( a , b ) ( )"},
		{"#define f(x, ...) x [ __VA_ARGS__ ]\nf(a) f(a, b, c)", "a [ ] a [ b , c ]"},
		{"#define f(x) x\n#define g f(\ng 3)", "3"},
		{"#define f(x) x f\nf(1)(2)", "1 f ( 2 )"},
		{"#define x y\n#undef x\nx", "x"},
		{"#define EMPTY\nEMPTY a EMPTY", "a"},
		{"#define f(x) x x\nf(f(f(a)))", "a a a a a a a a"},
		{"#pragma D attributes x\na", "#pragma D attributes x a"},
		{"#line 12 \"y\"\na", "a"},
	} {
		if got, err := preprocess(c.text, Options{}, nil); got != c.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", c.text, got, err, c.want)
		}
	}
}

func TestConditions(t *testing.T) {
	for cond, want := range map[string]bool{
		"1": true, "0": false, "X": false, "defined X": false, "defined(Y)": true, "Y == 3": true, "Y > 2 && Y < 4": true,
		"!defined X || 1 / 0": true, "0 && 1 / 0": false, "1 ? 0 : 1": false, "-1 < 0": true, "~0 == -1": true,
		"(1 + 2) * 3 == 9": true, "1 + 2 * 3 == 7": true, "7 / 2 == 3 && 7 % 2 == 1": true, "1 << 4 == 16": true,
		"0x10 == 16 && 010 == 8": true, "100L == 100UL": true, "'a' == 97": true, "defined __linux__": true,
		"defined __APPLE__": false, "__STDC__": true, "1 | 2 ^ 3 & 1": true, "5 != 5": false, "4 >= 5": false, "4 <= 4": true,
		"defined _VM_OPTS_H_": false, "10 - 3 - 2 == 5": true, "64 >> 2 == 16": true, "+1": true,
	} {
		text := "#define Y 3\n#if " + cond + "\nyes\n#else\nno\n#endif\n"
		got, err := preprocess(text, Options{}, nil)
		if err != nil || got != map[bool]string{true: "yes", false: "no"}[want] {
			t.Errorf("%s: %q, %v", cond, got, err)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"#ifdef A\n1\n#elif 1\n2\n#elif 1 / 0\n3\n#else\n4\n#endif", "2"},
		{"#ifndef A\n#if 0\n1\n#else\n2\n#endif\n#else\n3\n#endif", "2"},
		{"#if 0\nit's \"open\n#if 1\n#bogus\n#endif\n#else\nok\n#endif", "ok"},
	} {
		if got, err := preprocess(c.text, Options{}, nil); got != c.want || err != nil {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	headers := map[string]string{
		"a.h": "#ifndef A_H\n#define A_H\na\n#endif", "inc/b.h": "#pragma once\n#include \"c.h\"\nb", "inc/c.h": "c", "h.h": "#define H 9",
	}
	o := Options{
		Folders: []string{"inc"}, Headers: []string{"h.h"},
		Definitions: []Definition{{Text: "V"}, {Text: "W=x y"}, {Text: "F(q)=q q"}, {Text: "U=1"}, {Text: "U", Undef: true}},
	}
	got, err := preprocess("#include \"a.h\"\n#include \"a.h\"\n#include <b.h>\n#include \"b.h\"\nV W F(z) U H", o, headers)
	if want := "a c b 1 x y z z U 9"; got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestErrors(t *testing.T) {
	headers := map[string]string{"self.h": `#include "self.h"`}
	for text, want := range map[string]string{
		"#if 1\na":                          "x.d:1:1: this group of lines does not end; close it with #endif",
		"#endif":                            "x.d:1:1: #endif has no #if",
		"a\n#else":                          "x.d:2:1: #else has no #if",
		"#if 1\n#else\n#elif 1\n#endif":     "x.d:3:1: #elif behind #else",
		"#if\n#endif":                       "x.d:1:1: a condition ends where a number is missing",
		"#if (1\n#endif":                    "x.d:1:1: a condition has ( without )",
		"#if 1 / 0\n#endif":                 "x.d:1:1: a condition divides by 0",
		"#if 1 1\n#endif":                   `x.d:1:1: a condition does not end at "1"`,
		"#file: x":                          "x.d:1:1: #file is no directive of C's preprocessor; write a remark as /* ... */",
		"#error no":                         "x.d:1:1: #error no",
		"#define f(x x)":                    "x.d:1:10: the parameters of the macro f are no list of names",
		"#define f(x) x\nf(1":               "x.d:2:1: the arguments of the macro f do not end; close them with )",
		"#define f(x) x\nf(1, 2)":           "x.d:2:1: the macro f takes 1 arguments, and has 2",
		"#define 1":                         "x.d:1:8: #define takes the name of a macro",
		"#define f(x) x##)\nf(a)":           `x.d:2:1: ## makes no token of "a)"`,
		"#include \"self.h\"":               "self.h:1:1: headers are included in each other, more than 200 deep; one of them includes itself",
		"#include <sys/types.h>":            "x.d:1:1: the header sys/types.h is in no folder that -I names",
		"#ifdef __SIZEOF_POINTER__\n#endif": "x.d:1:8: whether __SIZEOF_POINTER__ is defined only a compiler knows",
		"#if __GNUC__ > 3\n#endif":          "x.d:1:5: whether __GNUC__ is defined only a compiler knows",
		"#include NAME":                     "x.d:1:1: what #include NAME names is not known here",
	} {
		_, err := preprocess(text, Options{}, headers)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if _, ok := errors.AsType[*NeedsCompiler](err); ok == strings.Contains(want, ";") && ok {
			t.Errorf("%q: %T", text, err)
		}
	}
}

// parameters are a number of names.
func parameters(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("a", i)
	}
	return strings.Join(names, ",")
}

// What a few lines make of themselves is bounded.
func TestBounds(t *testing.T) {
	double := "#define f0(x) x x\n"
	paste := "#define p0(x) x##x\n"
	quote := "#define q0(x) #x\n"
	for i := 1; i < 40; i++ {
		n, last := string(rune('0'+i/10))+string(rune('0'+i%10)), ""
		if last = string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10)); i == 1 {
			last = "0"
		}
		double += "#define f" + n + "(x) f" + last + "(x x)\n"
		paste += "#define p" + n + "(x) p" + last + "(x##x)\n"
		quote += "#define q" + n + "(x) q" + last + "(#x)\n"
	}
	chain := strings.Builder{}
	for i := range 5000 {
		chain.WriteString("#define c" + strings.Repeat("x", i%70) + string(rune('a'+i/70%26)) + " d\n")
	}
	for _, text := range []string{
		double + "f39(a)", paste + "p39(abc)", quote + `q39("a")`,
		"#define r(x) r2(x)(x)\n#define r2(x) r\n" + strings.Repeat("r(", 1000) + strings.Repeat(")", 1000),
		"#if " + strings.Repeat("(", 100_000) + "\n#endif", "#if " + strings.Repeat("!", 100_000) + "1\n#endif",
		strings.Repeat("#if 1\n", 10_000), chain.String() + "ca",
	} {
		preprocess(text, Options{}, nil)
	}
	if _, err := preprocess(double+"f39(a)", Options{}, nil); err == nil || !strings.Contains(err.Error(), "macros") {
		t.Errorf("2^40 tokens: %v", err)
	}
	for text, want := range map[string]string{
		"#define f(x) " + strings.Repeat("x ", 1000) + "\n" + strings.Repeat("f() ", 1000): "macros take more than 262144 tokens",
		"#define g(" + parameters(257) + ")":                                               "x.d:1:10: the macro g has more than 256 parameters",
	} {
		if _, err := preprocess(text, Options{}, nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	if _, err := preprocess("#define g("+parameters(256)+")", Options{}, nil); err != nil {
		t.Error(err)
	}
	if _, err := preprocess(`#include "t.h"`, Options{}, map[string]string{"t.h": "#if 1\n#include \"t.h\"\n#include \"t.h\"\n#endif"}); err == nil {
		t.Error("a header that includes itself twice")
	}
}

// Of a system that the options name no macro of Linux is there, and of FreeBSD's release
// nothing is known.
func TestSystem(t *testing.T) {
	o := Options{System: []string{"__FreeBSD__"}}
	got, err := preprocess("#ifdef __FreeBSD__\na\n#endif\n#if defined(__linux__) || defined(__sun)\nb\n#endif\n#ifdef __unix__\nc\n#endif", o, nil)
	if got != "a c" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = preprocess("#if __FreeBSD__ >= 13\n#endif", o, nil)
	if _, ok := errors.AsType[*NeedsCompiler](err); !ok {
		t.Errorf("a release: %v", err)
	}
}

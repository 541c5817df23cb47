package provider

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

func parse(text string) (*File, error) { return Parse(NewScanner("x.d", text)) }

// shapes of declarations, one line each.
func shapes(providers []*Provider) (all []string) {
	for _, p := range providers {
		for _, probe := range p.Probes {
			var args []string
			for _, a := range probe.Args {
				args = append(args, strings.TrimSpace(a.Type+" : "+a.Name))
			}
			all = append(all, p.Name+" "+probe.Name+" ("+strings.Join(args, ", ")+")")
		}
	}
	return all
}

func TestFiles(t *testing.T) {
	want := map[string][]string{
		"database.d": {
			"store transaction__start (unsigned int :)", "store lock__wait__start (const char * :, int :)", "store query__parse__start (const char * :)",
			"store buffer__read__start (int :, Block :, unsigned int :, unsigned int :, unsigned int :, int :, unsigned char :)",
			"store buffer__read__done (int :, Block :, unsigned int :, unsigned int :, unsigned int :, int :, unsigned char :, unsigned char :)",
			"store checkpoint__start (int :)", "store twophase__checkpoint__start ()",
		},
		"interpreter.d": {
			"interp function__entry (const char * :, const char * :, int :)", "interp line (const char * : file, const char * : name, int : lineno)",
			"interp gc__start (int : generation)", "interp import__find__load__done (const char * :, int :)", "interp audit (const char * :, void * :)",
		},
		"toolkit.d": {
			"tk proc__entry (TkStr : name, int : objc, struct Tk_Obj ** : objv)",
			"tk proc__args (TkStr : name, TkStr : arg1, TkStr : arg2, TkStr : arg3, TkStr : arg4, TkStr : arg5, TkStr : arg6, TkStr : arg7, TkStr : arg8, TkStr : arg9)",
			"tk obj__create (struct Tk_Obj * : obj)", "tk event (int : errno, int : class, int : free, unsigned long long int : id)", "tk tk__probe (TkStr : arg0)",
		},
		"agent.d": {
			"Agent request__start (string :, uint8_t :, uint16_t :, int :, void * :)", "Agent client__auth (int :, string :, pid_t :, zoneid_t :)",
			"Agent monitorNotify (uintptr_t :, char * :, uintptr_t :)", "Agent translated (conn_t * : c, int : s)", "Agent nothing ()",
			"Agent callbacks (int (*)(int, char *) : f, char ** : argv, const volatile struct s *const : p)",
		},
	}
	names, err := filepath.Glob("testdata/*.d")
	if err != nil || len(names) != len(want) {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range names {
		base := filepath.Base(name)
		var preprocess func(string) (string, error)
		if base != "agent.d" {
			tools.Need(t, "cc")
			preprocess = func(path string) (string, error) { return tools.Command{}.Output(t, "cc", "-E", "-x", "c", path), nil }
		}
		f, err := Read(name, preprocess)
		if err != nil {
			t.Error(err)
			continue
		}
		expect.Equal(t, want[base], shapes(f.Providers), "%s", base)
		if faults := Check(f.Providers, false); len(faults)+len(f.Warnings) > 0 {
			t.Errorf("%s: %v, %v", base, faults, f.Warnings)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"BEGIN{}", nil},
		{"provider libisc { };", nil},
		{"provider p { probe a(void); };", []string{"p a ()"}},
		{"provider p {; probe a(unsigned x, char unsigned u_char, foo);; };", []string{"p a (unsigned : x, char unsigned : u_char, foo :)"}},
		{"provider p { probe a(unsigned size_t const x, foo_t y z[3]); };", []string{"p a (unsigned size_t const : x, foo_t y * : z)"}},
		{"typedef char unsigned u_char; provider p { probe a(u_char c); };", []string{"p a (u_char : c)"}},
		{"provider p { probe a(); };\nprovider q { probe a(); };\nprovider p { probe b(); };", []string{"p a ()", "p b ()", "q a ()"}},
		{"x:::y /a > (b)/ { trace(\"}\"); }\nprovider p { probe a(); };", []string{"p a ()"}},
		{"static int f(int x) { return (x); }\nstruct s g(void) { }\nstruct s { int x; } v;\nprovider p { probe a(); };", []string{"p a ()"}},
		{"translator t <s *x> { a = x->b; };\ninline int i = 3;\nprovider p { probe a(struct s, enum e x, union u *); };", []string{"p a (struct s :, enum e : x, union u * :)"}},
		{"# 12 \"y.d\"\nprovider p { probe a(); };", []string{"p a ()"}},
	} {
		f, err := parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, shapes(f.Providers)); diff != "" || len(f.Warnings) > 0 {
			t.Errorf("%q: %s %v", c.text, diff, f.Warnings)
		}
	}
}

// All faults and warnings, in their order.
func told(text string) (all []string) {
	f, err := parse(text)
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range list.Unwrap() {
			all = append(all, err.Error())
		}
		return all
	}
	for _, w := range append(f.Warnings, Warnings(f.Providers)...) {
		all = append(all, "warning: "+w.Error())
	}
	for _, err := range Check(f.Providers, false) {
		all = append(all, err.Error())
	}
	return all
}

func TestFaults(t *testing.T) {
	long := strings.Repeat("n", 64)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"provider p { probe a(); probe a(int); };", []string{"x.d:1:31: probe a is declared twice, first at x.d:1:20; remove one"}},
		{"provider p { probe a_b(); probe a__b(); };", []string{"x.d:1:33: p:::a__b and p:::a_b (x.d:1:20) would have one macro, P_A_B; rename one"}},
		{"provider p { probe a(); probe a__enabled(); };", []string{"x.d:1:31: p:::a__enabled and p:::a (x.d:1:20) would have one macro, P_A_ENABLED; rename one"}},
		{"provider a_b { probe c(); }; provider a { probe b_c(); };", []string{"x.d:1:49: a:::b_c and a_b:::c (x.d:1:22) would have one macro, A_B_C; rename one"}},
		{"provider a__ { probe c(); }; provider a { probe __c(); };", []string{"x.d:1:49: a:::__c and a__:::c (x.d:1:22) would have one semaphore, a___c; rename one"}},
		{"provider " + long + " { probe a(); };", []string{"x.d:1:10: the name of provider " + long + " has 64 characters, and may have 63"}},
		{"provider p { probe " + long + "(); };", []string{"x.d:1:20: the name of probe " + long + " has 64 characters, and may have 63"}},
		{"provider p { probe a(" + strings.Repeat("int, ", 12) + "int); };", []string{"x.d:1:20: probe a has 13 arguments, and notes of probes tell 12 at most"}},
		{"provider p { probe a(" + strings.Repeat("int, ", 255) + "int); };", []string{"x.d:1:1297: this is argument 256, and there may be 255"}},
		{"provider p { probe a(int " + strings.Repeat("*", 1000) + "); };", []string{"x.d:1:22: this argument has more than 1000 words"}},
		{"provider p1 { probe a(); };", []string{"warning: x.d:1:10: the name of provider p1 ends in a digit; DTrace puts the number of the process there and refuses it; choose another one"}},
		{"provider p { probe a(); }", []string{"warning: x.d:1:25: provider p has no ; at its end, which DTrace refuses; write };"}},
		{"provider p {\n#if X\nprobe a();\n#endif\n};", []string{"warning: x.d:3:1: a probe stands between #if and #endif, which count as remarks without a preprocessor; give -C"}},
		{"int x\nprovider p { probe a(); };", []string{"warning: x.d:1:5: what stands before provider p has no ; at its end"}},
		{"provider p { probe a(T *x, U y) : (V *y, W *z); };", []string{"x.d:1:20: argument 1 of the translation of probe a stands for none of its 2 arguments"}},
		{"provider p { probe a(T *) : (V *, W *); };", []string{"x.d:1:20: argument 1 of the translation of probe a stands for none of its 1 arguments"}},
		{"#pragma D attributes Evolving/Evolving/Common provider q name\nprovider p { };", []string{"warning: x.d:1:1: there are attributes of a provider q, which is not declared here"}},
		{"#pragma D attributes Good/Evolving/Common provider p name\nprovider p { };", []string{`x.d:1:1: "Good/Evolving/Common" is not a stability; it is: #pragma D attributes Evolving/Evolving/Common provider NAME provider`}},
		{"#pragma D attributes Evolving/Evolving/Common provider p probe\nprovider p { };", []string{"x.d:1:1: attributes are those of a part of a provider: provider, module, function, name, args; it is: #pragma D attributes Evolving/Evolving/Common provider NAME provider"}},
		{"#pragma D colour red", []string{"warning: x.d:1:1: #pragma D colour is not known, and has no effect"}},
		{"providre p { probe a(); };", []string{"x.d:1:14: probe a is in no provider; put it into provider NAME { ... };"}},
		{"provider p { probe a()", []string{"x.d:1:22: the declaration of probe a does not end: here is the end of the file; write ;", "x.d:1:12: provider p does not end; close it with };"}},
		{"provider p { probe a() probe b(); };", []string{`x.d:1:24: the declaration of probe a does not end: here is "probe"; write ;`}},
		{"provider p { probe a(int; probe b(); };", []string{`x.d:1:21: this list of arguments ends at ";"; close it with )`}},
		{"provider p { probe a(int,); probe b(,); };", []string{`x.d:1:26: an argument is missing before ")"`, `x.d:1:37: an argument is missing before ","`}},
		{"provider p { probe a(1); };", []string{"x.d:1:22: an argument has a type, and here is 1"}},
		{"provider p { probe a(const *); };", []string{"x.d:1:22: an argument has a type, and here is const *"}},
		{"provider p { probe a(int = 3); };", []string{`x.d:1:26: "=" is not part of an argument's type`}},
		{"provider p { probe a(int, ...); };", []string{`x.d:1:27: "..." is not part of an argument's type`}},
		{"provider p { probe a(int, void); };", []string{"x.d:1:27: void is the type of no argument"}},
		{"provider p { probe a-b(); };", []string{"x.d:1:21: the name of a probe is one of C; write __ for a dash"}},
		{"provider p { probe a : f(); };", []string{"x.d:1:22: probes for functions of others are not supported; write probe a(...);"}},
		{"provider p { probe a; };", []string{`x.d:1:21: probe a has no list of arguments: here is ";"; write ()`}},
		{"provider p { probe 3(); };", []string{`x.d:1:20: a probe has a name, and here is "3"`}},
		{"provider p { prob a(); probe b(); };", []string{`x.d:1:14: a provider holds probes, probe NAME(TYPE, ...);, and here is "prob"`}},
		{"provider p { probe a(); provider q { probe b(); };", []string{"x.d:1:25: provider q stands inside of provider p; close the one before with };"}},
		{"struct s { provider p { probe a(); }; };", []string{"x.d:1:12: provider p stands inside of what begins at x.d:1:10; close it with }", "x.d:1:25: probe a is in no provider; put it into provider NAME { ... };"}},
		{"provider { probe a(); };", []string{`x.d:1:1: a provider begins here, and then comes "{"; it is: provider NAME { ... };`, "x.d:1:12: probe a is in no provider; put it into provider NAME { ... };"}},
		{"typedef struct {", []string{`x.d:1:16: this "{" is not closed`}},
		{"int f(];", []string{`x.d:1:7: "]" does not close the "(" of x.d:1:6`}},
		{"};", []string{`x.d:1:1: "}" closes nothing`}},
		{"provider p { probe a(); }; /* x", []string{"x.d:1:28: this comment does not end"}},
		{"int x;\n#0 /* x", []string{"x.d:2:4: this comment does not end"}},
		{"# 7 \"y.d\"\nprovider p { probe a(1); };", []string{"y.d:7:22: an argument has a type, and here is 1"}},
	} {
		expect.Equal(t, c.want, told(c.text), "%q", c.text)
	}
}

// What a preprocessor makes of a file is parsed, with the places of the original.
func TestPreprocessed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.d")
	disk.Write(t, path, "#include <sys/types.h>\nprovider p { probe a(pid_t); };\n")
	f, err := Read(path, func(string) (string, error) { return "# 2 \"c.d\"\nprovider p { probe a(pid_t); };\n", nil })
	if err != nil || len(f.Providers) != 1 || f.Providers[0].Pos.String() != "c.d:2:10" {
		t.Errorf("%+v, %v", f, err)
	}
	want := errors.New("cc: not found")
	if _, err := Read(path, func(string) (string, error) { return "", want }); err != want {
		t.Errorf("%v, want %v", err, want)
	}
}

// FuzzParse parses any text. Either there is an error with
// its place, or each probe that is written where one may stand is told.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*.d")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		text := disk.Read(f, name)
		f.Add(string(text))
	}
	f.Add("#define f(x, ...) #x x##y __VA_ARGS__\n#if defined f && 1 ? 2 : (3)\nprovider p { probe f(a)(); };\n#elif 0\n#endif")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parse(text)
		if (file == nil) != (err != nil) {
			t.Fatalf("%v, %v", file, err)
		}
		if err != nil {
			if e, ok := errors.AsType[*Error](err.(interface{ Unwrap() []error }).Unwrap()[0]); !ok || e.Pos.Line < 0 {
				t.Fatalf("%v", err)
			}
			return
		}
		Check(file.Providers, false)
		Warnings(file.Providers)
		for _, p := range file.Providers {
			for _, probe := range p.Probes {
				if p.Name == "" || probe.Name == "" || len(probe.Args) > maxArguments {
					t.Fatalf("%+v", probe)
				}
			}
		}
	})
}

// A file is read up to a size that no provider file has.
func TestLargestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.d")
	for size, want := range map[int]string{maxSize: "", maxSize + 1: path + ": is too large: more than 4194304 bytes"} {
		disk.Write(t, path, strings.Repeat("\n", size))
		got := ""
		if _, err := readFile(path); err != nil {
			got = err.Error()
		}
		expect.Equal(t, want, got, "%d bytes", size)
	}
}

func TestAttributes(t *testing.T) {
	f, err := parse("#pragma D attributes Evolving/stable/Common provider p name\nprovider p { }; provider q { };\n" +
		"#pragma D attributes Standard/Internal/ISA provider p args\n#pragma D attributes Private/Private/Unknown provider p name\n#pragma D attributes Obsolete/External/CPU provider p provider\n")
	expect.OK(t, err)
	private := Attribute{Name: 1, Data: 1}
	want := []Attributes{{{2, 3, 1}, private, private, private, {7, 0, 4}}, {private, private, private, private, private}}
	expect.Equal(t, want, []Attributes{f.Providers[0].Attributes, f.Providers[1].Attributes})
}

func TestMapping(t *testing.T) {
	for text, want := range map[string][]int{
		"(int i, long j)":                          {0, 1},
		"(int i, long j) : (long j, int i, int i)": {1, 0, 0},
		"(int, long) : (int, long)":                {0, 1},
		"(int, long) : (int x)":                    {0},
		"(int i, long j) : (int, long)":            {0, 1},
		"(int i) : (int j)":                        {-1},
		"(int) : (int, int)":                       {0, -1},
		"(int i) : ()":                             {},
		"()":                                       {},
	} {
		f := expect.Value(parse("provider p { probe x" + text + "; };"))(t)
		expect.Equal(t, want, f.Providers[0].Probes[0].Mapping(), "%s", text)
	}
}

func TestCheckDOF(t *testing.T) {
	long := strings.Repeat("t", 128)
	f, err := parse("provider p1 { probe x(int); }; provider q { probe y(" + long[1:] + "); probe z(int a) : (" + long + " a); };" +
		"\nprovider " + long[:53] + " { };\nprovider " + long[:54] + " { };\nprovider pid { };")
	expect.OK(t, err)
	var got []string
	for _, err := range CheckDOF(f.Providers) {
		got = append(got, err.Error())
	}
	want := []string{
		"x.d:1:10: the name of provider p1 ends in a digit, where DTrace puts the number of the process; choose another one",
		"x.d:1:189: a type of probe z has 128 characters, and may have 127: " + long + "; give it a name with typedef",
		"x.d:3:10: the name of provider " + long[:54] + " has 54 characters, and may have 53, because DTrace appends the number of the process",
		"x.d:4:10: provider pid is DTrace's own; choose another one",
	}
	expect.Equal(t, want, got)
}

func TestSystems(t *testing.T) {
	for name, want := range map[string]System{
		"linux": Linux, "": Linux, "x86_64-linux-gnu": Linux, "freebsd": FreeBSD, "aarch64-unknown-freebsd14.0": FreeBSD,
		"x86_64-pc-solaris2.11": Illumos, "illumos": Illumos, "x86_64-unknown-illumos": Illumos,
	} {
		expect.Equal(t, want, expect.Value(ParseSystem(name))(t), "%s", name)
	}
	expect.Equal(t, "x86_64-apple-darwin: has no form of probes that is known here; --target names a system that has",
		expect.Failure(ParseSystem("x86_64-apple-darwin")))
}

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

package provider

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

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

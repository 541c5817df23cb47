package line

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseScript(t *testing.T) {
	for _, c := range []struct {
		text string
		want Script
	}{
		{"/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( /lib/libc.so.6 /usr/lib/libc_nonshared.a AS_NEEDED ( /lib64/ld.so ) )\n",
			Script{Inputs: []string{"/lib/libc.so.6", "/usr/lib/libc_nonshared.a", "/lib64/ld.so"}, Words: []string{"OUTPUT_FORMAT", "(", "elf64-x86-64", ")"}}},
		{`INPUT(-lm,"a b.o")STARTUP(crt0.o) INCLUDE more.lds`, Script{Inputs: []string{"-lm", "a b.o", "crt0.o"}, Includes: []string{"more.lds"}}},
		{"SECTIONS{.text:{*(EXCLUDE_FILE(*first.o lib[a-z].a:b.o) .text)}}", Script{Words: []string{
			"SECTIONS", "{", ".text:", "*", "(", "EXCLUDE_FILE", "*first.o", "lib[a-z].a:b.o", ")", ".text", "}",
		}}},
		{"INPUT(open", Script{Inputs: []string{"open"}}},
		{"INPUT x /* open", Script{Words: nil}},
		{`"open`, Script{Words: []string{"open"}}},
		{"", Script{}},
	} {
		if diff := cmp.Diff(&c.want, ParseScript(c.text)); diff != "" {
			t.Errorf("%q: %s", c.text, diff)
		}
	}
}

func TestSelects(t *testing.T) {
	for _, c := range []struct {
		pattern, file string
		archive, want bool
	}{
		{"*", "sub/first.o", false, true},
		{"*first.o", "sub/first.o", false, true},
		{"sub/*.o", "sub/first.o", false, true},
		{"sub/*.o", "/tmp/x/sub/first.o", false, false},
		{"*/sub/f?rst.[!a]", "/tmp/sub/first.o", false, true},
		{"*/sub/f?rst.[!o]", "/tmp/sub/first.o", false, false},
		{"first.o", "sub/first.o", false, false},
		{"*libx.a:*", "sub/libx.a", true, true},
		{"*libx.a:", "sub/libx.a", true, true},
		{":*.o", "sub/first.o", false, true},
		{":*.a", "sub/libx.a", true, false},
		{"*x.o:*", "sub/x.o", false, false},
		{"[", "[", false, false},
		{"a[b", "a[b", false, false},
		{`\*.o`, "*.o", false, true},
		{".text.*", "sub/first.o", false, false},
	} {
		if got := Selects(c.pattern, c.file, c.archive); got != c.want {
			t.Errorf("%s, %s: %v", c.pattern, c.file, got)
		}
	}
}

func TestCandidates(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{"one/libx.so", "one/libx.a", "two/libx.a", "two/other.o", "root/usr/lib/libx.a"} {
		os.MkdirAll(filepath.Dir(file), 0o777)
		if err := os.WriteFile(file, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		line string
		want []string
	}{
		{"-Lone -lx -Ltwo", []string{"one/libx.so", "one/libx.a", "two/libx.a"}},
		{"-Lone -Ltwo -Bstatic -lx", []string{"one/libx.a", "two/libx.a"}},
		{"-Lone -Ltwo -l:other.o", []string{"two/other.o"}},
		{"--sysroot=root -L=/usr/lib -lx", []string{"root/usr/lib/libx.a"}},
		{"--sysroot=root -L$SYSROOT/usr/lib -lx", []string{"root/usr/lib/libx.a"}},
		{"-Lthree -lx -ly", nil},
	} {
		l := Parse(Split([]byte(c.line)), GNU)
		var got []string
		for i := range l.Args {
			if l.Args[i].Kind == Library && l.Args[i].Value != "y" {
				got = l.Candidates(&l.Args[i])
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.line, diff)
		}
	}
}

func FuzzScript(f *testing.F) {
	f.Add("SECTIONS { .text : { *(.text) } } INPUT(a.o) /* x */ \"y\"")
	f.Fuzz(func(t *testing.T, text string) {
		s := ParseScript(text)
		for _, w := range s.Words {
			Selects(w, "sub/first.o", false)
		}
	})
}

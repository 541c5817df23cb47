package line

import (
	"fmt"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// summary returns what a script says of files, as words.
func summary(s *Script) string {
	var all []string
	for _, name := range s.Inputs {
		all = append(all, "input "+name.Text)
	}
	for _, i := range s.Includes {
		all = append(all, fmt.Sprint("include ", i.Within, " ", i.Text))
	}
	for _, f := range s.Directories {
		all = append(all, "directory "+f)
	}
	for _, f := range s.Formats {
		all = append(all, "format "+f)
	}
	for _, p := range s.Patterns {
		text := s.Text[p.Start:p.End]
		if p.Excludes {
			text = "-" + text
		}
		for _, n := range p.Sections {
			word, _, _ := strings.Cut(s.Text[n.At:], " ")
			text += " " + strings.TrimRight(word, "()};")
			if n.Follows {
				text += "+"
			}
			if n.Sorted {
				text += "s"
			}
			if n.List >= 0 {
				text += "-"
			}
		}
		all = append(all, text)
	}
	return strings.Join(append(all, s.Words...), "|")
}

func TestParseScript(t *testing.T) {
	for _, c := range []struct {
		within     Context
		text, want string
		dialect    Dialect
	}{
		{TopLevel, "/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( /lib/libc.so.6 /usr/lib/libc_nonshared.a AS_NEEDED ( /lib64/ld.so ) )\n",
			"input /lib/libc.so.6|input /usr/lib/libc_nonshared.a|input /lib64/ld.so|format elf64-x86-64", GNU},
		{TopLevel, `OUTPUT_FORMAT("elf32-littlearm", elf32-bigarm , "elf32-littlearm") INPUT(a.o)`, "input a.o|format elf32-littlearm|format elf32-bigarm|format elf32-littlearm", GNU},
		{TopLevel, `INPUT(-lm "a b.o")STARTUP(crt0.o) INCLUDE more.lds SEARCH_DIR("x y")`, "input -lm|input a b.o|input crt0.o|include 0 more.lds|directory x y", GNU},
		{TopLevel, "SECTIONS{.text:{*(EXCLUDE_FILE(*first.o lib[a-z].a:b.o) .text)}}", "-*first.o|-lib[a-z].a:b.o|* .text-", GNU},
		{TopLevel, "SECTIONS { . = 0x100 + b.o(x); .a ALIGN(4) : AT(b.o) { . = b.o(.x); x=b.o(.x); KEEP(*(.a .b)) \"b c.o\"(.text) b.o } > RAM AT> ROM :p =0x90 INCLUDE more }",
			`include 1 more|* .a .b+|"b c.o" .text|b.o`, GNU},
		{TopLevel, "SECTIONS { .a : { BYTE(1) ASSERT(a.o(x), \"b.o\") INCLUDE x.inc SORT(*.o)(SORT_BY_NAME(.text*) EXCLUDE_FILE(z.o) .data .rodata) SORT(CONSTRUCTORS) CONSTRUCTORS } .b : { c.o(*) } }",
			"include 2 x.inc|-z.o|*.o .text*s .data- .rodata+|c.o *", GNU},
		{TopLevel, "SECTIONS { OVERLAY 0x10 : NOCROSSREFS { .o1 { a.o(.x) } .o2 { b.o(.y) } } .c : { EXCLUDE_FILE(q.o) *(.z) } }", "a.o .x|b.o .y|-q.o|* .z", GNU},
		{TopLevel, "VERSION { { a.o; } } MEMORY { b.o } # c.o(x)\nSECTIONS { /DISCARD/ : { d.o(*) } }", "d.o *", GNU},
		{Sections, ".a : { a.o(.x) } } INPUT(y)", "input y|a.o .x", GNU},
		{Output, "a.o(.x) } .b : { c.o(.x) } INPUT(y)", "input y|a.o .x|.b|:|{|c.o|(|.x|)|}", GNU},
		{TopLevel, "INPUT(open", "input open", GNU},
		{TopLevel, "INPUT x /* open", "x", GNU},
		{TopLevel, `"open`, "open", GNU},
		{TopLevel, "", "", GNU},
		{Output, "KEEP(KEEP(KEEP", "", GNU},
		{Output, "SORT(", "", GNU},
		{TopLevel, "INPUT(a.o,b.o c.o, d.o ,e.o \"f.o\",g.o)", "input a.o,b.o|input c.o,|input d.o|input e.o|input f.o|input g.o", GNU},
		{TopLevel, "INPUT(a.o,b.o c.o, d.o ,e.o \"f.o\",g.o)", "input a.o,b.o|input c.o,|input d.o|input e.o|input f.o|input g.o", Gold},
		{TopLevel, "INPUT(a.o,b.o c.o, d.o ,e.o \"f.o\",g.o)", "input a.o|input b.o|input c.o|input d.o|input e.o|input f.o|input g.o", LLD},
		{Output, "a,b.o(.x) *(EXCLUDE_FILE(c.o, d.o ,e.o , f.o) .x) }", "a,b.o .x|-c.o,|-d.o|-,e.o|-f.o|* .x-", GNU},
		{Output, "*(EXCLUDE_FILE(c.o, d.o ,e.o , f.o) .x) }", "-c.o|-d.o|-e.o|-f.o|* .x-", LLD},
	} {
		expect.Equal(t, c.want, summary(c.dialect.ParseScript(c.text, c.within)), "%q", c.text)
	}
}

func TestSelects(t *testing.T) {
	for _, c := range []struct {
		dialect      Dialect
		pattern      string // with "-" before it in EXCLUDE_FILE
		name, member string
		want         bool
	}{
		{GNU, "*", "sub/first.o", "", true},
		{GNU, "*first.o", "sub/first.o", "", true},
		{GNU, "sub/*.o", "/tmp/x/sub/first.o", "", false},
		{GNU, "*/sub/f?rst.[!a]", "/tmp/sub/first.o", "", true},
		{GNU, "*/sub/f?rst.[!o]", "/tmp/sub/first.o", "", false},
		{GNU, "first.o", "sub/first.o", "", false},
		{GNU, "*libx.a:*", "sub/libx.a", "m.o", true},
		{GNU, "*libx.a:", "sub/libx.a", "m.o", true},
		{GNU, "sub/libx.a:n.o", "sub/libx.a", "m.o", false},
		{GNU, "*m.o", "sub/libx.a", "m.o", true},
		{GNU, "sub/*", "sub/libx.a", "m.o", false},
		{GNU, "-sub/libx.a", "sub/libx.a", "m.o", true},
		{GNU, ":*.o", "sub/first.o", "", true},
		{GNU, ":*.o", "sub/libx.a", "m.o", false},
		{GNU, "*x.o:*", "sub/x.o", "", false},
		{GNU, `\*.o`, "*.o", "", true},
		{Gold, "sub/*", "sub/libx.a", "m.o", true},
		{Gold, "*m.o", "sub/libx.a", "m.o", false},
		{Gold, "sub/libx.a(m.o)", "sub/libx.a", "m.o", true},
		{LLD, "*m.o", "sub/libx.a", "m.o", true},
		{LLD, "sub/libx.a:m.o", "sub/libx.a", "m.o", true},
		{LLD, "sub/libx.a:", "sub/libx.a", "m.o", false},
		{LLD, `"sub/*.o"`, "sub/first.o", "", false},
		{LLD, "sub/*.o", "sub/first.o", "", true},
		{Mold, "*", "sub/first.o", "", false},
	} {
		text, excludes := strings.CutPrefix(c.pattern, "-")
		p := Pattern{Name: Name{Text: strings.Trim(text, `"`), Quoted: text[0] == '"'}, Excludes: excludes}
		f := File{Name: c.name, Given: c.name, Archive: c.member != "", Member: c.member}
		expect.Equal(t, c.want, c.dialect.Selects(p, f), "%d: %s, %s(%s)", c.dialect, c.pattern, c.name, c.member)
	}
	for pattern, want := range map[string]bool{"*": false, "[ab].o": false, "[!a-z]": false, "[": true, "[]a]": true, "[[:alpha:]]": true, "[^]]": true, "a[b]c[": true} {
		expect.Equal(t, want, Obscure(pattern), "%s", pattern)
	}
}

func FuzzScript(f *testing.F) {
	f.Add("SECTIONS { .text : { *(.text) } } INPUT(a.o) /* x */ \"y\"")
	f.Fuzz(func(t *testing.T, text string) {
		for _, within := range []Context{TopLevel, Sections, Output} {
			for _, p := range GNU.ParseScript(text, within).Patterns {
				expect.Equal(t, strings.Trim(text[p.Start:p.End], `"`), p.Text)
				for _, s := range p.Sections {
					if s.At < p.End || s.At > len(text) || s.List > s.At {
						t.Errorf("%q: sections %+v", text, s)
					}
				}
				for _, d := range []Dialect{GNU, Gold, LLD} {
					d.Selects(p, File{Name: "sub/first.o"})
				}
			}
		}
	})
}

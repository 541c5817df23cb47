package limits

import (
	"fmt"
	"strings"
)

// repeat returns a text of about n bytes: a beginning, the same over and over, an end.
func repeat(head, middle, tail string) func(n int) []byte {
	return func(n int) []byte { return []byte(head + strings.Repeat(middle, n/len(middle)) + tail) }
}

// numbered returns a text of about n bytes: a beginning, lines with their number, an end.
func numbered(head, line, tail string) func(n int) []byte {
	return func(n int) []byte {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, line, i)
		}
		b.WriteString(tail)
		return []byte(b.String())
	}
}

var manifestReaders = []string{"check --manifest FILE tiny.o"}
var baselineReaders = []string{"check --baseline FILE tiny.o"}
var prototypeReaders = []string{"convert --stapsdt --prototypes FILE -o OUT tiny.o"}
var responseReaders = []string{"inspect @FILE", "ld --linker true -- @FILE", "provider -h -s shop.d @FILE"}
var providerReaders = []string{"provider -h -s FILE -o OUT", "provider -G -s FILE -o OUT", "provider -h -x stubs -s FILE -o OUT", "provider -G --target x86_64-freebsd -x lazyload -s FILE -o OUT tiny.o"}
var scriptReaders = []string{"ld --linker true -- -o OUT FILE", "ld --linker true -- -o OUT -T FILE"}

const objectHead = `{"version":1,"objects":[{"file":"a.o","status":"converted","sites":[`

var textAttacks = []attack{
	{"manifest-objects", repeat(`{"version":1,"objects":[`, "{},", "{}]}"), manifestReaders},
	{"manifest-sites", repeat(objectHead, "{},", "{}]}]}"), manifestReaders},
	{"manifest-short", repeat(objectHead, `{"kind":"a","state":"b","record":{}},`, `{"kind":"a","state":"b"}]}]}`), manifestReaders},
	{"manifest-named", numbered(objectHead, `{"section":".text","function":"f%x","state":"live","probe":"a___b","kind":"call","record":{}},`, `{"kind":"a","state":"b"}]}]}`), manifestReaders},
	{"manifest-deep", repeat(`{"version":1,"objects":`, "[", ""), manifestReaders},
	{"manifest-unknown", repeat(`{"version":1,"x":[`, "[],", "[]]}"), manifestReaders},
	{"manifest-string", repeat(`{"version":1,"objects":[{"file":"`, "x", `"}]}`), manifestReaders},
	{"manifest-many", repeat("", `{"version":1,"objects":[]}`, ""), manifestReaders},
	{"manifest-space", repeat("", " ", ""), manifestReaders},
	{"baseline-lines", numbered("", "%x\n", ""), baselineReaders},
	{"baseline-empty", repeat("", "\n", ""), baselineReaders},
	{"baseline-line", repeat("", "x", ""), baselineReaders},
	{"baseline-comments", repeat("", "# x\n", ""), baselineReaders},
	{"prototypes", numbered("", "f%x();\n", ""), prototypeReaders},
	{"prototypes-arguments", repeat("f(int", ",int", ")\n"), prototypeReaders},
	{"prototypes-line", repeat("", "(", ""), prototypeReaders},
	{"prototypes-empty", repeat("", "\n", ""), prototypeReaders},
	{"response-words", repeat("", "a ", ""), responseReaders},
	{"response-word", repeat("", "a", ""), responseReaders},
	{"response-self", repeat("", "@in ", ""), responseReaders},
	{"response-quotes", repeat("", "\\\"", ""), responseReaders},
	{"script-inputs", repeat("INPUT(", "a ", ")"), scriptReaders},
	{"script-nested", repeat("", "INPUT(", ""), scriptReaders},
	{"script-sections", repeat("SECTIONS { .text : {", " *(.text.a)", "} }"), scriptReaders},
	{"script-braces", repeat("SECTIONS ", "{", ""), scriptReaders},
	{"script-include", repeat("", "INCLUDE in\n", ""), scriptReaders},
	{"script-comments", repeat("", "/**/", ""), scriptReaders},
	{"provider-probes", numbered("provider p {", "probe p%x();", "};"), providerReaders},
	{"provider-arguments", numbered("provider p {", "probe p%x(int,int,int,int,int,int,int,int,int,int);", "};"), providerReaders},
	{"provider-pointers", repeat("provider p { probe a(int ", "*", "); };"), providerReaders},
	{"provider-parentheses", repeat("provider p { probe a(int ", "(", "); };"), providerReaders},
	{"provider-typedefs", numbered("", "typedef int t%x;", "provider p { probe a(); };"), providerReaders},
	{"provider-structs", repeat("", "struct a {", ""), providerReaders},
	{"provider-faults", repeat("provider p {", "probe p();", "};"), providerReaders},
	{"provider-name", repeat("provider p { probe ", "x", "(); };"), providerReaders},
	{"provider-pragmas", repeat("", "#pragma D attributes a/b/c provider p args\n", "provider p { probe a(); };"), providerReaders},
	{"provider-comments", repeat("", "/**/", "provider p { probe a(); };"), providerReaders},
	{"provider-empties", numbered("", "provider p%x {};", ""), providerReaders},
}

//go:build unix

package ld

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// scriptSeen runs a link by a linker that does nothing but print the copies of scripts
// that it gets. T stands for the temporary directory, and W for the current one.
func scriptSeen(t *testing.T, linker, script string, args ...string) string {
	t.Helper()
	temp := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	directory := expect.Value(os.Getwd())(t)
	disk.Write(t, "the.ld", script)
	show := "#!/bin/sh\nfor word; do case $word in\n*/scripts/*) sed -e 's|" + temp + "/sdtconvert-ld-[0-9]*|T|g' -e 's|" + directory + "|/W|g' \"$word\" ;;\nesac; done\n"
	expect.OK(t, os.WriteFile(linker, []byte(show), 0o777))
	out := &bytes.Buffer{}
	_, err := Run((&signals{}).process(temp, out), options("./"+linker), "ld", args)
	if err != nil {
		return err.Error()
	}
	return out.String()
}

// All that changes in a script is what names inputs that there are copies of.
func TestCopiedScripts(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	probes, plain := objects.Read(t, "calls.amd64-gcc12-O2.o"), objects.Read(t, "none.amd64-gcc12-O2.o")
	os.Mkdir("sub", 0o777)
	for name, data := range map[string][]byte{"a.o": probes, "sub/a.o": probes, "sub/x.o": plain, "x.o": plain} {
		disk.Write(t, name, data)
	}
	expect.OK(t, os.Symlink("../the.ld", "sub/in.ld"))
	const flag = "-shared a.o sub/a.o sub/x.o -T the.ld"
	for _, c := range []struct{ linker, line, script, want string }{
		{"ld.bfd", "x.o the.ld", "/* sub/a.o */ INPUT( sub/a.o ,\tx.o )\n", "/* sub/a.o */ INPUT( \"T/0/./sub/a.o\" ,\t\"./x.o\" )\n"},
		{"ld.gold", "x.o ./the.ld", "INPUT(sub/a.o x.o)", `INPUT("T/0/./sub/a.o" "/W/./x.o")`},
		{"ld.lld", "x.o sub/../the.ld", "INPUT(sub/a.o x.o)", `INPUT("T/0/sub/../sub/a.o" "sub/../x.o")`},
		{"ld.bfd", flag, "SECTIONS { .a : { KEEP(sub/a.o(.text)) \"a.o\"(*) } }", `SECTIONS { .a : { KEEP("T/0/sub/a.o"(.text)) "T/0/a.o"(*) } }`},
		{"ld.bfd", flag, "SECTIONS { .a : { sub/*.o(.text) } }", `SECTIONS { .a : { "T/0/sub/*.o"(.text) } }`},
		{"ld.lld", flag, "SECTIONS { .a : { sub/*.o(.text) } }", `SECTIONS { .a : { T/0/sub/*.o(.text) } }`},
		{"ld.bfd", flag, "SECTIONS { .a : { */a.o(.b EXCLUDE_FILE(q) .c) } }", `SECTIONS { .a : { */a.o(EXCLUDE_FILE("T/0/a.o") .b EXCLUDE_FILE(q "T/0/a.o") .c) } }`},
		{"ld.lld", flag, "SECTIONS { .a : { */a.o(.b .c) } }", `SECTIONS { .a : { */a.o(EXCLUDE_FILE("T/0/a.o") .b .c) } }`},
		{"ld.gold", flag, "SECTIONS { .a : { *(EXCLUDE_FILE(sub/[ab].o) .b) } }", `SECTIONS { .a : { *(EXCLUDE_FILE(sub/[ab].o "T/0/sub/a.o") .b) } }`},
		{"ld.lld", flag, "SECTIONS { .a : { *a.o(.b) *(.sub/a.o) } x = a.o(b) }", ""},
		{"ld.lld", flag, "SECTIONS { .a : { sub/x.o(.b) } }", ""},
		{"ld.bfd", flag, "SECTIONS { .a : { *(EXCLUDE_FILE(*/a.o) .b) } }", "the.ld: the pattern */a.o does not mean the same of inputs and of their converted copies; link with --in-place"},
		{"ld.bfd", flag + " -lc", "SECTIONS { .a : { [!a]ub/*.o(.b) } }", "the.ld: the pattern [!a]ub/*.o does not mean the same of inputs and of their converted copies; link with --in-place"},
		{"mold", "sub/in.ld x.o", "INPUT(a.o)", "sub/in.ld: names a.o, which may be a.o or sub/a.o to this linker; name one in full"},
		{"mold", "sub/in.ld a.o", "INPUT(x.o)", ""},
		{"ld.bfd", "x.o -c the.ld", "LOAD ./sub/a.o\n", "the.ld: names ./sub/a.o, which holds probes, and the linker would read that and no copy; link with --in-place"},
	} {

		got := scriptSeen(t, c.linker, c.script, strings.Fields(c.line)...)
		expect.Equal(t, c.want, got, "%s %s: %s\nis", c.linker, c.line, c.script)
	}
}

package ld

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// inputsOf shows what a line's inputs are, and how they are read.
func inputsOf(l *commandLine) string {
	var all []string
	for i := range l.args {
		a := &l.args[i]
		text := a.value
		switch a.kind {
		case otherArg:
			continue
		case libraryArg:
			text = "-l" + text
		}
		if a.static {
			text += "(static)"
		}
		if a.foreign {
			text += "(foreign)"
		}
		if a.lazy {
			text += "(lazy)"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestInputs(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"a.o b.o -o out", "a.o b.o"},
		{"-o a.o b.o", "b.o"},
		{"-oa.o b.o", "b.o"},
		{"-omagic a.o", "a.o"},
		{"--omagic a.o", "a.o"},
		{"--output a.o --output=a.o b.o", "b.o"},
		{"-T a.o -Ta.o -Ttext 0 -Ttext=0 --script a.o -dT a.o b.o", "b.o"},
		{"-R a.o --just-symbols a.o --just-symbols=a.o b.o", "b.o"},
		{"-r a.o -i b.o -Ur c.o", "a.o b.o c.o"},
		{"-rpath a.o -rpath=a.o --rpath a.o -rpath-link a.o b.o", "b.o"},
		{"-z defs -zdefs a.o -m elf_x86_64 -melf_x86_64 b.o", "a.o b.o"},
		{"-plugin p.so -plugin-opt=a.o -plugin-opt a.o --plugin p.so b.o", "b.o"},
		{"-Map a.o -Map=a.o --Map a.o -M b.o", "b.o"},
		{"-soname a.o -soname=a.o -h a.o -ha.o b.o", "b.o"},
		{"-e main -emain --entry main a.o", "a.o"},
		{"-export-dynamic a.o -E b.o -eh-frame-hdr c.o", "a.o b.o c.o"},
		{"-dynamic-linker /lib/ld.so -I /lib/ld.so a.o", "a.o"},
		{"-shared a.o -s b.o -S c.o -x d.o -pie e.o -N f.o -n g.o", "a.o b.o c.o d.o e.o f.o g.o"},
		{"-u sym -y sym -defsym a=b --defsym a=b --wrap sym a.o", "a.o"},
		{"-O 2 -O2 a.o -G 8 -G8 b.o -G c.o --threads 4 --threads d.o", "a.o b.o c.o d.o"},
		{"--build-id a.o --unknown b.o -unknown2 c.o", "a.o b.o c.o"},
		{"-lc -l m --library=x --library y", "-lc -lm -lx -ly"},
		{"-lc -Bstatic -lc -Bdynamic -lc -static -lc", "-lc -lc(static) -lc -lc(static)"},
		{"--push-state -dn -la --pop-state -lb --pop-state -lc", "-la(static) -lb -lc"},
		{"-b binary a.o -b elf64-x86-64 b.o --format=binary c.o --format default d.o", "a.o(foreign) b.o c.o(foreign) d.o"},
		{"--form=binary a.o -form default b.o --forma binary c.o --format elf32-i386 d.o -b=binary e.o", "a.o(foreign) b.o c.o(foreign) d.o e.o"},
		{"--ou a.o --sc a.o --default-sc a.o --just-sym a.o -ju a.o -relo b.o -oua.o", "b.o"},
		{"--pu -Bstatic -la --po -lb", "-la(static) -lb"},
		{"--start-lib a.o --end-lib b.o", "a.o(lazy) b.o"},
		{"( a.o ) --start-group -( b.o -) --end-group", "( a.o ) b.o"},
		{"- a.o -= b.o", "a.o b.o"},
		{"a.o -o", "a.o"},
		{"-l", ""},
	} {
		l := parseLine(strings.Fields(c.line), false)
		expect.Equal(t, c.want, inputsOf(l), "%s", c.line)
	}
}

func TestLine(t *testing.T) {
	l := parseLine(strings.Fields("-Lone -L two --library-path=three -L=four --sysroot=/root -r -o out -T a.lds --default-script=b.lds -c c.mri -Map=m --dependency-file d --why-extract=w -C directory a.o"), false)
	expect.Equal(t, "directory/a.o /a.o", l.inDirectory("a.o")+" "+l.inDirectory("/a.o"))
	l.args = nil
	want := &commandLine{
		relocatable: true, output: "out", directory: "directory", sysroot: "/root", libraryPath: []string{"one", "two", "three", "=four"},
		scripts: []string{"a.lds", "b.lds"}, namesFilesElsewhere: true,
	}
	expect.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", l))
	if !parseLine([]string{"--relo", "a.o"}, false).relocatable {
		t.Error("an abbreviation of --relocatable is not one")
	}
	if parseLine([]string{"--version", "-v", "-o", "a.o"}, false).hasInputs() {
		t.Error("nothing is an input")
	}
}

// Each input is a word, and they keep their order.
func FuzzParse(f *testing.F) {
	f.Add("-o out a.o -lx --start-lib b.o --end-lib")
	f.Add("--push-state -Bstatic --pop-state --pop-state -z")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Fields(text)
		for _, arg := range parseLine(words, false).args {
			if arg.kind != inputArg {
				continue
			}
			at := slices.Index(words, arg.value)
			if at < 0 {
				t.Fatalf("%q: %q is no word, or stands before the input before it", text, arg.value)
			}
			words = words[at+1:]
		}
	})
}

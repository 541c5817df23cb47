package ld

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// Committed objects that tests link.
const (
	callsStubs  = "small.amd64-clang19-O2.o"
	otherStubs  = "comdat.amd64-gcc12-Os.o"
	noProbes    = "none.amd64-gcc12-O2.o"
	otherTarget = "small.arm64-clang19-O2.o"
	refused     = "bad.amd64-gcc12-lea.o"
	alsoRefused = "bad.amd64-gcc12-opcode.o"
	bitcode     = "calls.amd64-clang19-bitcode.o"
	slim        = "calls.amd64-gcc12-slim.o"
	fat         = "calls.amd64-gcc12-fat.o"
)

// enter goes to a directory with copies of committed objects.
func enter(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, object := range files {
		expect.OK(t, os.MkdirAll(filepath.Dir(name), 0o777))
		disk.Write(t, name, objects.Read(t, object))
	}
}

// testLink returns a link by a linker of a name, without the process of one.
func testLink(linker string) *link {
	p := &process.Process{Stdout: &strings.Builder{}, Stderr: &strings.Builder{}}
	l := &link{Process: p, session: newSession(p)}
	l.linker.path, l.linker.family = linker, familyOf(linker)
	l.Convert.Jobs, l.Convert.Patch = 2, testOptions()
	return l
}

// messages returns what a test link has printed.
func (l *link) messages() string { return l.Stderr.(*strings.Builder).String() }

// lookAt looks at the files of a line.
func (l *link) lookAt(args string) survey {
	ln := parseLine(strings.Fields(args), false)
	return look(ln, newExaminer(l, ln), 2)
}

// words says of a survey which files it has, and what is known of each.
func (s survey) words() (words []string) {
	for _, in := range s.files {
		word := in.path
		add := func(is bool, what string) {
			if is {
				word += " " + what
			}
		}
		add(in.isNamed, "named")
		add(in.isData, "binary")
		if !in.isData {
			add(in.isOptional, "optional")
			add(in.isScript, "script")
			add(in.hasForeignTarget, "foreign")
			add(in.namesProbes && !in.callsStubs, "probes")
			add(in.callsStubs, "stubs")
			add(in.generatesProbes, "generates")
			add(in.isConvertible(), "convertible")
			add(in.err != nil, "wrong")
			for _, member := range in.members {
				word += " " + member.path + "?"
			}
		}
		words = append(words, word)
	}
	return words
}

// The look finds the files that a line leads to, says what they hold, and whether the linker reads others.
func TestLook(t *testing.T) {
	enter(t, map[string]string{
		"a.o": callsStubs, "b.o": noProbes, "arm64.o": otherTarget, "lib/libx.so": noProbes, "arm64/libx.so": otherTarget,
		"a.bc": bitcode, "slim.o": slim, "fat.o": fat, "sub/libd.so": callsStubs,
	})
	regular(t, "lib/libx.a", "a.o", "b.o")
	regular(t, "code.a", "a.bc", "slim.o")
	thin(t, "thin.a", "a.o", "b.o")
	disk.Write(t, "lib/libs.so", "/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64) OUTPUT_FORMAT()\nGROUP ( a.o AS_NEEDED ( -lx ) )\n")
	disk.Write(t, "lib/libcommand.so", "INPUT(a.o)\nSECTIONS { }\n")
	disk.Write(t, "lib/liblost.so", "INPUT(a.o lost.o)\n")
	disk.Write(t, "lib/libopen.so", "INPUT(a.o /* b.o )\n")
	disk.Write(t, "foreign.ld", "TARGET(binary)\nINPUT(a.o)\n")
	disk.Write(t, "own.ld", `TARGET("elf64-x86-64") TARGET(default)`+"\n")
	disk.Write(t, "damaged.o", "\x7fELF__dtrace_probe_a___b")
	disk.Write(t, "damaged-too.o", "\x7fELF")
	disk.Write(t, "damaged.a", "!<arch>\n__dtrace_probe_a___b")
	for _, test := range []struct {
		name, linker, args string
		want               []string
		missesFiles        bool
	}{
		{name: "inputs", args: "-o out a.o b.o", want: []string{"a.o named stubs convertible", "b.o named"}},
		{name: "the same file", args: "a.o a.o ./a.o", want: []string{"a.o named stubs convertible", "./a.o named stubs convertible"}},
		{name: "value of a flag", args: "a.o --unknown value", want: []string{"a.o named stubs convertible"}, missesFiles: true},
		{name: "binary", args: "a.o -b binary a.o a.o --format=elf b.o", want: []string{"a.o named stubs convertible", "a.o named binary", "a.o named binary", "b.o named"}},
		{name: "lazy", args: "--start-lib a.o --end-lib b.o", want: []string{"a.o named optional stubs convertible", "b.o named"}},
		{name: "symbols", args: "b.o --just-symbols=a.o", want: []string{"b.o named", "a.o stubs convertible"}},
		{name: "script of the line", args: "a.o -T foreign.ld", want: []string{"a.o named stubs convertible"}, missesFiles: true},
		{name: "library", args: "a.o -Llib -lx", want: []string{"a.o named stubs convertible", "lib/libx.so"}},
		{name: "static library", args: "-static -Llib -lx", want: []string{"lib/libx.a stubs convertible"}},
		{name: "library of another target", args: "a.o -Larm64 -Llib -lx", want: []string{"a.o named stubs convertible", "lib/libx.so"}},
		{name: "library of this target", args: "arm64.o -Llib -Larm64 -lx", want: []string{"arm64.o named stubs convertible", "arm64/libx.so stubs convertible"}},
		{name: "no such library", args: "a.o -lnone", want: []string{"a.o named stubs convertible"}, missesFiles: true},
		{name: "script of a library", args: "b.o -Llib -ls", want: []string{"b.o named", "lib/libs.so script", "a.o stubs convertible", "lib/libx.so", "lib/libx.a stubs convertible"}},
		{name: "script of a library for another target", args: "arm64.o -Llib -ls", want: []string{"arm64.o named stubs convertible"}, missesFiles: true},
		{name: "script with a command", args: "b.o -Llib -lcommand", want: []string{"b.o named", "lib/libcommand.so script", "a.o stubs convertible"}, missesFiles: true},
		{name: "script of a lost file", args: "b.o -Llib -llost", want: []string{"b.o named", "lib/liblost.so script", "a.o stubs convertible"}, missesFiles: true},
		{name: "script with an open comment", args: "b.o -Llib -lopen", want: []string{"b.o named", "lib/libopen.so script", "a.o stubs convertible"}, missesFiles: true},
		{name: "foreign script", args: "foreign.ld own.ld", want: []string{"foreign.ld named script foreign", "own.ld named script"}, missesFiles: true},
		{name: "thin archive", args: "thin.a", want: []string{"thin.a named stubs a.o?"}},
		{name: "bitcode", args: "a.bc", want: []string{"a.bc named stubs generates"}},
		{name: "bitcode for lld", linker: "ld.lld", args: "a.bc code.a", want: []string{"a.bc named stubs generates", "code.a named stubs generates convertible"}, missesFiles: true},
		{name: "archive of code", args: "-plugin liblto_plugin.so code.a", want: []string{"code.a named stubs generates convertible"}},
		{name: "slim and fat", args: "-plugin LLVMgold.so slim.o fat.o", want: []string{"slim.o named stubs generates", "fat.o named stubs generates convertible"}},
		{name: "plugin that adds libraries", args: "-plugin libdep.so damaged-too.o", want: []string{"damaged-too.o named"}, missesFiles: true},
		{name: "fat without a plugin", args: "fat.o", want: []string{"fat.o named stubs convertible"}},
		{name: "damaged", args: "damaged.o damaged-too.o damaged.a", want: []string{"damaged.o named wrong", "damaged-too.o named", "damaged.a named stubs convertible"}},
	} {
		s := testLink(cmp.Or(test.linker, "ld")).lookAt(test.args)
		expect.Equal(t, test.want, s.words(), "%s", test.name)
		expect.Equal(t, test.missesFiles, s.missesFiles, "%s misses files", test.name)
	}
}

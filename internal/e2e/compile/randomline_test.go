package compile

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// randomLine is a command line of a compiler.
type randomLine struct {
	words   []string
	stdin   string
	files   map[string]string // that it names, beside the sources
	objects map[string]bool   // the files that may be objects of it
	soon    bool              // whether the compiler runs soon after the files were changed
}

var randomSources = []string{
	"probe.c", "probe.c", "guard.c", "guard.c", "none.c", "refused.c", "broken.c", "sub/deep.c", "sub/../probe.c", "two.dots.c", "white space.c",
	"plus.cc", "pre.S", "asm.s",
}

// randomFlags are flags of gcc and clang. Some have a value that looks like a source.
var randomFlags = [][]string{
	{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"}, {"-g"}, {"-g", "-gsplit-dwarf"}, {"-fPIC"}, {"-Wall"}, {"-Wall", "-Werror"}, {"-pipe"}, {"-ffunction-sections"},
	{"-fno-asynchronous-unwind-tables"}, {"-MD"}, {"-MMD", "-MP"}, {"-MD", "-MF", "dep.d"}, {"-MD", "-MFsub/dep.d", "-MT", "none.c"}, {"-Wp,-MMD,wp.d"},
	{"-save-temps"}, {"-save-temps=obj"}, {"-flto"}, {"-I", "none.c"}, {"-isystem", "none.c"}, {"-idirafter", "probe.c"}, {"-include", "head.h"},
	{"-D", "NAME"}, {"-DNAME=2"}, {"-U", "NAME"}, {"-Xlinker", "none.c"}, {"-L", "none.c"}, {"-l", "none.c"}, {"-T", "none.c"}, {"-u", "none.c"},
	{"-z", "none.c"}, {"-Xassembler", "--noexecstack"}, {"-Wa,--noexecstack"}, {"-Xpreprocessor", "-DX"}, {"-fno-common"}, {"-std=gnu11"}, {"-w"},
	{"-iquote", "none.c"}, {"-isysroot", "none.c"}, {"-imacros", "head.h"}, {"-print-file-name=libc.so"}, {"-dumpversion"},
}

var flagsOfGCC = [][]string{
	{"--param", "ggc-min-expand=20"}, {"-aux-info", "aux.txt"}, {"-dumpbase", "none.c"}, {"-dumpdir", "sub/d-"}, {"-flto", "-ffat-lto-objects"},
	{"-fdump-tree-optimized"}, {"-fstack-usage"}, {"--include", "head.h"},
}

var flagsOfClang = [][]string{
	{"-mllvm", "-inline-threshold=1"}, {"-Xclang", "-fno-pch-timestamp"}, {"--serialize-diagnostics", "none.o"}, {"-MJ", "none.o"}, {"-emit-llvm"},
	{"-flto=thin"}, {"-Qunused-arguments"}, {"-integrated-as"}, {"-fno-integrated-as"}, {"-ivfsoverlay", "none.c"},
}

// stops are flags that end a compilation before there is an object.
var stops = []string{"-S", "-E", "-M", "-MM", "-fsyntax-only"}

// line makes a command line.
func (c *comparison) line() *randomLine {
	l := &randomLine{files: map[string]string{}, objects: map[string]bool{}}
	inputs := c.inputs(l)
	args := c.flags()
	compiles := c.IntN(12) > 0
	if compiles {
		args = append(args, []string{pick(c.Rand, []string{"-c", "-c", "-c", "-c", "--compile"})})
	}
	if c.IntN(10) == 0 {
		args = append(args, []string{pick(c.Rand, stops)})
	}
	if len(inputs) == 1 && c.IntN(2) == 0 || c.IntN(12) == 0 {
		args = append(args, c.output(l))
	}
	args = append(args, inputs...)
	if len(inputs) == 1 && inputs[0][0] != "-x" { // which is for what follows it
		c.Shuffle(len(args), func(i, j int) { args[i], args[j] = args[j], args[i] })
	}
	if !compiles {
		clear(l.objects) // what -save-temps leaves of a link is none
	}
	var words []string
	for _, some := range args {
		words = append(words, some...)
	}
	words = c.respond(l, words)
	l.words = append(c.compiler.words[:len(c.compiler.words):len(c.compiler.words)], words...)
	if c.IntN(10) == 0 {
		l.words = append(pick(c.Rand, [][]string{{"env"}, {"env", "NONE=none.c"}, {"nice", "-n", "1"}}), l.words...)
	}
	for _, name := range slices.Sorted(maps.Keys(l.objects)) {
		if !strings.ContainsRune(name, '/') && c.IntN(3) == 0 {
			l.files[name] = c.stale
		}
	}
	l.soon = c.IntN(2) == 0
	return l
}

// inputs returns sources with what belongs to them, and notes the objects.
func (c *comparison) inputs(l *randomLine) [][]string {
	switch c.IntN(16) {
	case 0:
		l.objects["suffixless.o"] = true
		return [][]string{{"-x", "c", "suffixless"}}
	case 1:
		l.objects["-.o"] = true
		l.stdin = "void __dtrace_probe_app___in(void);\nvoid in(void) { __dtrace_probe_app___in(); }\n"
		return [][]string{{"-x", "c", "-"}}
	case 2:
		return [][]string{{"head.h"}}
	}
	var all [][]string
	for range pick(c.Rand, []int{1, 1, 1, 2, 3}) {
		source := pick(c.Rand, randomSources)
		base := filepath.Base(source)
		l.objects[strings.TrimSuffix(base, filepath.Ext(base))+".o"] = true
		all = append(all, []string{source})
	}
	return all
}

func (c *comparison) flags() [][]string {
	known := append(randomFlags[:len(randomFlags):len(randomFlags)], flagsOfGCC...)
	if c.compiler.clang {
		known = append(randomFlags[:len(randomFlags):len(randomFlags)], flagsOfClang...)
	}
	all := [][]string{{"-frandom-seed=1"}}
	for range c.IntN(6) {
		all = append(all, pick(c.Rand, known))
	}
	return all
}

// output returns a flag for the output.
func (c *comparison) output(l *randomLine) []string {
	name := pick(c.Rand, []string{"out.o", "sub/out.o", "out", "none.c.o", "with space.o", "none/out.o", "/dev/null", "-"})
	l.objects[name] = true
	return pick(c.Rand, [][]string{{"-o", name}, {"-o" + name}, {"--output=" + name}, {"--output", name}})
}

// respond puts some of the words into response files.
func (c *comparison) respond(l *randomLine, words []string) []string {
	for n := c.IntN(8) - 5; n > 0 && len(words) > 1; n-- {
		at := c.IntN(len(words))
		name := "args" + string(rune('0'+n)) + ".rsp"
		for _, word := range words[at:] {
			l.files[name] += `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + "\"\n"
		}
		words = append(words[:at:at], "@"+name)
	}
	return words
}

package compile

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// randomCompilations is how many random command lines a run of the tests compares.
const randomCompilations = 40

// A compiler run by sdtconvert leaves the files that it leaves by itself, the objects that
// it has written converted, and those that cannot be converted removed; it prints the same
// and has the same exit status.
func TestRandomCompilations(t *testing.T) {
	t.Parallel()
	compilers := randomCompilers(t)
	stale := unconverted(t)
	n := tools.Cases(t, randomCompilations)
	var group sync.WaitGroup
	var mu sync.Mutex
	outcomes := map[string]int{}
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		directory := filepath.Join(t.TempDir(), "work")
		group.Go(func() {
			for i := w; i < n; i += workers {
				c := &comparison{Rand: rand.New(rand.NewPCG(24, uint64(i))), t: t, compiler: compilers[i%len(compilers)], stale: stale, directory: directory}
				outcome := c.compare(i)
				mu.Lock()
				outcomes[outcome]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d random command lines: %v", n, outcomes)
	if outcomes["converted"] < n/4 {
		t.Errorf("only %d of %d made an object with probes", outcomes["converted"], n)
	}
}

// randomCompiler is a compiler with what it knows beside others.
type randomCompiler struct {
	words []string
	clang bool
}

func randomCompilers(t *testing.T) []randomCompiler {
	var all []randomCompiler
	for _, m := range []*toolchains.Machine{toolchains.AMD64, toolchains.ARM64} {
		for _, c := range toolchains.Compilers {
			words := m.CC(c)
			tools.Need(t, words[0])
			all = append(all, randomCompiler{words, c.Clang})
		}
	}
	return all
}

// unconverted returns an object with probes.
func unconverted(t *testing.T) string {
	t.Helper()
	tools.Need(t, "gcc")
	b := newBuild(t)
	b.must("gcc", "-c", "probe.c")
	return b.read("probe.o")
}

// comparison runs a compiler by itself and by sdtconvert.
type comparison struct {
	*rand.Rand
	t         *testing.T
	compiler  randomCompiler
	stale     string    // an object that an earlier run may have left
	directory string    // the same for both, since debug information names it
	prepared  time.Time // when the files were changed that are there before a run
}

// state is what a run leaves behind, and what it prints.
type state struct {
	files          map[string]string // by path, with the mode before the content
	stdout, stderr string
	status         int
}

func (c *comparison) compare(i int) (outcome string) {
	line := c.line()
	flags := pick(c.Rand, [][]string{nil, nil, {"--stapsdt"}, {"--layout", "relative"}, {"--no-records"}, {"--drop-relocations"}})
	alone, converted := c.alone(line, flags)
	through := c.through(line, flags)
	fail := func(format string, args ...any) {
		c.t.Errorf("case %d: %s -- %q %s: %s", i, strings.Join(flags, " "), line.words, tools.Shortened(fmt.Sprintf("%q", line.files)), fmt.Sprintf(format, args...))
	}
	if through.status != alone.status {
		fail("exit status %d, want %d; prints %s", through.status, alone.status, through.stderr)
	}
	if through.stdout != alone.stdout {
		fail("standard output %q, want %q", tools.Shortened(through.stdout), tools.Shortened(alone.stdout))
	}
	// Objects that are left to the link have a warning of cc alone.
	warnings := regexp.MustCompile(`(?m)^sdtconvert: warning: .*link-time optimisation.*\n`)
	if got, want := sorted(warnings.ReplaceAllString(through.stderr, "")), sorted(warnings.ReplaceAllString(alone.stderr, "")); got != want {
		fail("prints\n%s\nwant\n%s", got, want)
	}
	for _, name := range slices.Sorted(maps.Keys(alone.files)) {
		if text, ok := through.files[name]; !ok {
			fail("%s is missing", name)
		} else if text != alone.files[name] && c.repeats(line, flags, name, alone.files[name]) {
			fail("%s is different", name)
		}
	}
	for name := range through.files {
		if _, ok := alone.files[name]; !ok {
			fail("left behind: %s", name)
		}
	}
	switch {
	case converted:
		return "converted"
	case alone.status != 0:
		return "failed"
	}
	return "nothing to convert"
}

// alone runs the compiler by itself, and converts the objects that it has written.
// converted reports whether one has changed.
func (c *comparison) alone(line *randomLine, flags []string) (s *state, converted bool) {
	c.prepare(line)
	s = c.run(line.words, line.stdin)
	var objects []string
	for _, name := range slices.Sorted(maps.Keys(line.objects)) {
		info, err := os.Lstat(filepath.Join(c.directory, name))
		if err == nil && info.Mode().IsRegular() && !info.ModTime().Equal(c.prepared) && isObject(filepath.Join(c.directory, name)) {
			objects = append(objects, name)
		}
	}
	if len(objects) > 0 {
		before := c.files()
		conversion := c.run(slices.Concat([]string{converter}, flags, []string{"--"}, objects), "")
		s.stderr += conversion.stderr
		if s.status == 0 {
			s.status = conversion.status
		}
		after := c.files()
		for _, name := range objects {
			converted = converted || after[name] != before[name]
			if strings.Contains(conversion.stderr, "sdtconvert: "+name+": ") {
				os.Remove(filepath.Join(c.directory, name))
			}
		}
	}
	s.files = c.files()
	return s, converted
}

// repeats reports whether the compiler by itself makes the same file again: gcc's precompiled
// headers and names of .dwo files may have random numbers in them.
func (c *comparison) repeats(line *randomLine, flags []string, name, text string) bool {
	again, _ := c.alone(line, flags)
	return again.files[name] == text
}

func (c *comparison) through(line *randomLine, flags []string) *state {
	c.prepare(line)
	s := c.run(slices.Concat([]string{converter, "cc"}, flags, []string{"--"}, line.words), line.stdin)
	s.files = c.files()
	return s
}

// prepare makes the directory anew: the sources, response files, and objects of earlier
// runs.
func (c *comparison) prepare(line *randomLine) {
	c.prepared = time.Unix(1_000_000_000, 0)
	if line.soon {
		c.prepared = time.Now()
	}
	expect.OK(c.t, os.RemoveAll(c.directory))
	expect.OK(c.t, os.CopyFS(c.directory, os.DirFS(sources)))
	for name, text := range line.files {
		disk.Write(c.t, filepath.Join(c.directory, name), text)
	}
	expect.OK(c.t, filepath.WalkDir(c.directory, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, c.prepared, c.prepared)
	}))
}

// temporary matches the names of a compiler's temporary files.
var temporary = regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/[-. \w]*(cc\w{6}|-\w{6})`)

func (c *comparison) run(words []string, stdin string) *state {
	ran := tools.Command{Directory: c.directory, Stdin: stdin}.Result(c.t, words[0], words[1:]...)
	return &state{stdout: ran.Stdout, stderr: temporary.ReplaceAllString(ran.Stderr, "/tmp/x"), status: ran.Status}
}

func (c *comparison) files() map[string]string {
	files := map[string]string{}
	root := os.DirFS(c.directory)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := fs.ReadFile(root, path)
		text := temporary.ReplaceAllString(string(data), "/tmp/x")
		if strings.HasPrefix(text, "gpch") || strings.HasPrefix(text, "CPCH") {
			text = "a precompiled header, which may have a time or addresses in it"
		}
		files[path] = fmt.Sprint(info.Mode(), "\n", text)
		return err
	})
	expect.OK(c.t, err)
	return files
}

// isObject reports whether a file is a relocatable object with code.
func isObject(path string) bool {
	data, err := os.ReadFile(path)
	return err == nil && len(data) > 18 && string(data[:4]) == "\x7fELF" && data[16] == 1 && !bytes.Contains(data, []byte("__gnu_lto_slim"))
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

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

package ld

import (
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// randomLinks is how many random links a run of the tests compares, unless the
// environment variable SDTCONVERT_ATTACK has another number.
const randomLinks = 120

// mayRefuse matches what the wrapper says where it refuses a link that the linker takes: of a file that
// is linked both as an object and as it is, of what no conversion takes, of nested thin archives, and of scripts whose inputs are not known.
var mayRefuse = regexp.MustCompile(`bitcode of archives would be in the output twice|link with --in-place|name one in full|\(--format=binary\)|refused\.o\)?: .*do not take the stub's address|(bitcode\.o\)?|\.a): .*-fno-lto|libn\.a\(.*: is a member of the archive `)

// A link through the wrapper makes the program that the linker makes, or fails as it
// does: random lines, each linker called directly and by compilers.
func TestRandomLinks(t *testing.T) {
	callers := allCallers(t)
	direct := plainLinkers(t, callers)
	n, cache := tools.Cases(t, randomLinks), compileObjects(t)
	temp := t.TempDir()
	var group sync.WaitGroup
	var tally tally
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		tr := newTree(t, cache)
		group.Go(func() {
			for i := w; i < n; i += workers {
				c := callers[i%len(callers)]
				m := &lineMaker{Rand: rand.New(rand.NewPCG(20, uint64(i))), tree: tr, family: c.family, driver: c.compiler != ""}
				tally.add(t, i, c, compareLink(m, c, direct, temp))
			}
		})
	}
	group.Wait()
	left, err := os.ReadDir(temp)
	// A linker that ends before its time leaves files of GCC's plugin.
	left = slices.DeleteFunc(left, func(e os.DirEntry) bool {
		return strings.Contains(e.Name(), ".lto_") || strings.Contains(e.Name(), ".ltrans")
	})
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Logf("%d random links: %d made the same program, %d failed both ways, %d refused", n, tally.same, tally.failed, tally.refused)
	if tally.same < n/4 {
		t.Errorf("only %d of %d links made a program", tally.same, n)
	}
}

// caller is how a linker is called.
type caller struct {
	family, path string
	compiler     string // "" if the linker is called directly
}

// allCallers returns those that links are compared with: twice as many without a compiler,
// which is faster.
func allCallers(t *testing.T) (callers []caller) {
	t.Helper()
	clang := toolchains.LLVM("clang")
	tools.Need(t, "gcc", "ar", clang)
	for _, l := range linkers {
		tools.Need(t, l.Path)
		path := expect.Value(exec.LookPath(l.Path))(t)
		for _, compiler := range []string{"", "", "gcc", clang} {
			callers = append(callers, caller{family: l.Family, path: path, compiler: compiler})
		}
	}
	return callers
}

// plainLinkers makes a directory with the linkers under the names that compilers look for.
func plainLinkers(t *testing.T, callers []caller) string {
	t.Helper()
	directory := t.TempDir()
	for i, c := range callers {
		if i > 0 && callers[i-1].family == c.family {
			continue
		}
		expect.OK(t, os.Symlink(c.path, filepath.Join(directory, "ld."+c.family)))
	}
	return directory
}

// outcome is what came of a link.
type outcome struct {
	printed  string // by the program, "" where it was not linked
	called   string // how many calls of stubs it made
	records  int    // of sites
	read     string // the dependency file
	messages string
}

// comparison is one link done twice.
type comparison struct {
	line           []string // all that was run
	plain, wrapped outcome
}

// compareLink makes a random line, and links it without the wrapper and with it.
func compareLink(m *lineMaker, c caller, direct, temp string) *comparison {
	l := m.line()
	first, second := m.all(l.relocatable), m.all(l.items)
	var responses []string
	for name, text := range m.responses {
		os.WriteFile(m.path(name), []byte(text), 0o666)
		responses = append(responses, fmt.Sprintf("%s: %q", name, text))
	}
	done := c.compare(m.tree, first, append(c.flags(l.static), second...), direct, temp)
	done.line = append(responses, done.line...)
	for name := range m.responses {
		os.Remove(m.path(name))
	}
	return done
}

// compare links without the wrapper, and with it: first what -r takes, if anything.
func (c caller) compare(tr *tree, first, second []string, direct, temp string) *comparison {
	environ := []string{"TMPDIR=" + temp, "SDTCONVERT_LD=" + c.path}
	return &comparison{
		line:    []string{fmt.Sprintf("-r: %q", first), fmt.Sprintf("%q", second)},
		plain:   c.link(tr, c.command(direct, nil), first, second, nil),
		wrapped: c.link(tr, c.command(wrappers, []string{converter, "ld", "--linker", c.path, "--"}), first, second, environ),
	}
}

// command returns how a link begins: the linker itself, or a compiler that finds it in a
// directory.
func (c caller) command(directory string, wrapper []string) []string {
	if c.compiler == "" && wrapper != nil {
		return wrapper
	}
	if c.compiler == "" {
		return []string{c.path}
	}
	return []string{c.compiler, "-B" + directory, "-fuse-ld=" + c.family, "-nostdlib", "-no-pie"}
}

// flags returns those of a whole link.
func (c caller) flags(static bool) []string {
	switch {
	case static:
		return []string{"-static"}
	case c.compiler == "":
		return []string{"-dynamic-linker", "/lib64/ld-linux-x86-64.so.2"}
	}
	return nil
}

// link links, with -r first where there are words for it, and runs the program.
func (c caller) link(tr *tree, command, first, second, environ []string) (o outcome) {
	environ = append(append(os.Environ(), "LD_LIBRARY_PATH="+tr.path("dso")), environ...)
	run := func(name string, args ...string) (string, string, error) {
		var out, messages strings.Builder
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = tr.root, environ, &out, &messages
		err := cmd.Run()
		return out.String(), messages.String(), err
	}
	defer os.Remove(tr.path("relocated.o"))
	defer os.Remove(tr.path("program"))
	defer os.Remove(tr.path(dependencies))
	link := func(output string, words ...string) error {
		args := append(command[1:len(command):len(command)], "-o", output)
		_, messages, err := run(command[0], append(args, words...)...)
		o.messages += messages
		return err
	}
	if len(first) > 0 && link("relocated.o", append([]string{"-r"}, first...)...) != nil {
		return o
	}
	if link("program", second...) != nil {
		return o
	}
	if rule, err := os.ReadFile(tr.path(dependencies)); err == nil {
		definitions := regexp.MustCompile(`\S*` + regexp.QuoteMeta(converter) + ":?") // below another root, perhaps
		words := strings.Fields(string(definitions.ReplaceAll(rule, nil)))
		slices.Sort(words) // gold and mold do not keep the order of the line
		o.read = strings.Join(slices.Compact(words), " ") + "\n"
	}
	o.records = recordsOf(tr.path("program"))
	out, _, err := run(tr.path("program"))
	if err != nil {
		out = "fails: " + err.Error() + "\n" + out
	}
	o.printed, o.called, _ = strings.Cut(out, "stubs called: ")
	return o
}

// tally counts comparisons.
type tally struct {
	mu                    sync.Mutex
	same, failed, refused int
}

func (n *tally) add(t *testing.T, i int, c caller, done *comparison) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	plain, wrapped := done.plain, done.wrapped
	switch {
	case wrapped.printed == "" && plain.printed != "" && mayRefuse.MatchString(wrapped.messages):
		n.refused++
	case plain.printed == "" && strings.Contains(plain.messages, "__dtrace_probe_app___"):
		n.failed++ // stubs.o is between --start-lib and --end-lib, where the linker does not look for it any more
	case !done.agree():
		t.Errorf("link %d: %s", i, done.describe(c))
	case wrapped.printed == "":
		n.failed++
	default:
		n.same++
	}
}

// agree reports whether both links failed, or made programs that do the same, the
// wrapped one without a call of a stub.
func (d *comparison) agree() bool {
	crashed := strings.HasPrefix(d.wrapped.printed, "fails")
	if d.wrapped.printed != "" && compilersFile.ReplaceAllString(d.plain.read, "") != compilersFile.ReplaceAllString(d.wrapped.read, "") {
		return false
	}
	return inOrder(d.plain.printed) == inOrder(d.wrapped.printed) && (d.wrapped.printed == "" || crashed || strings.TrimSpace(d.wrapped.called) == "0" && d.hasAllSites())
}

// inOrder returns what a program prints. Code that lld generates has another place if it is an input, so
// then the numbers of objects are sorted.
func inOrder(printed string) string {
	if !strings.Contains(printed, strconv.Itoa(bitcodeNumber)+",") {
		return printed
	}
	return printedNumbers.ReplaceAllStringFunc(printed, func(numbers string) string {
		all := strings.Split(strings.TrimPrefix(numbers, "ids="), ",")
		slices.Sort(all)
		return "ids=" + strings.Join(all, ",")
	})
}

// printedNumbers matches the numbers of the objects that a program prints.
var printedNumbers = regexp.MustCompile(`ids=([0-9,]*)`)

// hasAllSites reports whether the wrapped program has a record of each site of each object in it. Where
// the linker drops functions, none is counted.
func (d *comparison) hasAllSites() bool {
	if strings.Contains(strings.Join(d.line, " "), "--gc-sections") {
		return true
	}
	sites := 0
	for _, number := range strings.FieldsFunc(printedNumbers.FindStringSubmatch(d.wrapped.printed)[1], func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(number)
		inObject, all := sitesIn(n)
		if err != nil || !all {
			return err == nil
		}
		sites += inObject
	}
	return sites == d.wrapped.records
}

// recordsOf returns how many records of calls a program has.
func recordsOf(path string) int {
	f, err := elf.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	if records := f.Section("sdt_instances_set"); records != nil {
		return int(records.Size / 16)
	}
	return 0
}

// compilersFile is a response file that gcc writes, or code that it generates, of a random name.
var compilersFile = regexp.MustCompile(`\S*/cc\w{6}\b(\.ltrans\d+\.ltrans\.o)?:?\s`)

func (d *comparison) describe(c caller) string {
	return fmt.Sprintf("%s %s:\n%s\nplain: %s%s%swrapped: %s%d records, calls of stubs: %s%s%s", c.compiler, c.family, strings.Join(d.line, "\n"),
		d.plain.printed, d.plain.read, tools.Shortened(d.plain.messages), d.wrapped.printed, d.wrapped.records, d.wrapped.called, d.wrapped.read, tools.Shortened(d.wrapped.messages))
}

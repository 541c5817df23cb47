package ld

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// randomLinks is how many random links a run of the tests compares, unless the
// environment variable SDTCONVERT_ATTACK has another number.
const randomLinks = 600

// mayRefuse is what the wrapper says where it refuses a link that the linker takes.
var mayRefuse = []string{
	"link with --in-place",
	"name those archives on the line",
}

// A link through the wrapper makes the program that the linker makes, or fails as it
// does: random lines, each linker called directly and by compilers.
func TestRandomLinks(t *testing.T) {
	clang := toolchains.LLVM("clang")
	tools.Need(t, "gcc", "ar", clang)
	var callers []caller
	for _, l := range linkers {
		tools.Need(t, l.Path)
		path, err := exec.LookPath(l.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, compiler := range []string{"", "", "gcc", clang} {
			callers = append(callers, caller{family: l.Family, path: path, compiler: compiler})
		}
	}
	direct := plainLinkers(t, callers)
	n, cache := randomLinks, compileObjects(t)
	if attack := os.Getenv("SDTCONVERT_ATTACK"); attack != "" {
		var err error
		if n, err = strconv.Atoi(attack); err != nil {
			t.Fatal(err)
		}
	}
	temp := t.TempDir()
	var group sync.WaitGroup
	var tally tally
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		tr := newTree(t, cache)
		group.Go(func() {
			for i := w; i < n; i += workers {
				c := callers[i%len(callers)]
				m := &lineMaker{Rand: rand.New(rand.NewPCG(21, uint64(i))), tree: tr, family: c.family, driver: c.compiler != ""}
				tally.add(t, i, c, compareLink(m, c, direct, temp))
			}
		})
	}
	group.Wait()
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
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
	compiler     string // "" for nobody: it is called directly
}

// plainLinkers makes a folder with the linkers under the names that compilers look for.
func plainLinkers(t *testing.T, callers []caller) string {
	t.Helper()
	folder := t.TempDir()
	for i, c := range callers {
		if i > 0 && callers[i-1].family == c.family {
			continue
		}
		if err := os.Symlink(c.path, filepath.Join(folder, "ld."+c.family)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// outcome is what came of a link.
type outcome struct {
	printed  string // by the program, "" where it was not linked
	called   string // how many calls of stubs it made
	messages string
}

// comparison is one link done twice.
type comparison struct {
	line           []string // all that was run
	plain, wrapped outcome
}

// compareLink links without the wrapper and with it.
func compareLink(m *lineMaker, c caller, direct, temp string) *comparison {
	l := m.line()
	done := &comparison{}
	first, second := m.all(l.relocatable), m.all(l.items)
	for name, text := range m.responses {
		os.WriteFile(m.path(name), []byte(text), 0o666)
		done.line = append(done.line, fmt.Sprintf("%s: %q", name, text))
	}
	done.line = append(done.line, fmt.Sprintf("-r: %q", first), fmt.Sprintf("%q", second))
	second = append(c.flags(l.static), second...)
	done.plain = c.link(m.tree, c.command(direct, nil), first, second, nil)
	environ := []string{"TMPDIR=" + temp, "SDTCONVERT_LD=" + c.path}
	done.wrapped = c.link(m.tree, c.command(wrappers, []string{converter, "ld", "--linker", c.path, "--"}), first, second, environ)
	for name := range m.responses {
		os.Remove(m.path(name))
	}
	return done
}

// command is how a link begins: the linker itself, or a compiler that finds it in a folder.
func (c caller) command(folder string, wrapper []string) []string {
	if c.compiler == "" && wrapper != nil {
		return wrapper
	}
	if c.compiler == "" {
		return []string{c.path}
	}
	return []string{c.compiler, "-B" + folder, "-fuse-ld=" + c.family, "-nostdlib", "-no-pie"}
}

// flags are those of a whole link.
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
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case done.plain.printed == done.wrapped.printed && (done.wrapped.printed == "" || strings.HasPrefix(done.wrapped.printed, "fails")):
		n.failed++
		if os.Getenv("RANDOM_SHOW") != "" {
			t.Logf("FAILED %d %s %s: %s", i, c.compiler, c.family, done.plain.messages)
		}
		return
	case done.wrapped.printed == "" && slices.ContainsFunc(mayRefuse, func(s string) bool { return strings.Contains(done.wrapped.messages, s) }):
		n.refused++
		return
	case done.plain.printed == done.wrapped.printed && strings.TrimSpace(done.wrapped.called) == "0":
		n.same++
		return
	}
	t.Errorf("link %d, %s %s:\n%s\nplain: %s%swrapped: %scalls of stubs: %s%s", i, c.compiler, c.family, strings.Join(done.line, "\n"),
		done.plain.printed, tools.Shortened(done.plain.messages), done.wrapped.printed, done.wrapped.called, tools.Shortened(done.wrapped.messages))
}

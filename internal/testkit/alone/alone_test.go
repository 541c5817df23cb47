package alone

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// odd are names of tests with characters that mean something to a regular expression, to
// a shell or to -run, and names that begin or end like others.
var odd = []string{
	"gcc -O2+pic", "gcc -O2+pi", "$HOME", "it's", `a\d`, "(a|b)", "[a/b]", "a|b", "x*", "", "b", "b", "^b$", "é\t", "{1,2}", "a//b", `"`, "#01", "`id`", "-O2;true", "trailing/",
}

// names are the tests of TestOdd that ran.
var names []string

// TestOdd has a subtest of each odd name, which fails in a child process of
// TestCommandRunsOneTest.
func TestOdd(t *testing.T) {
	names = nil
	for i, name := range odd {
		t.Run(name, func(t *testing.T) {
			names = append(names, t.Name())
			if i%2 == 0 {
				ReportProduct(t, fmt.Sprintf("number=%d", i))
			}
			Report(t)
			if os.Getenv("ALONE_FAILS") != "" {
				t.Error("it fails")
			}
		})
	}
}

var command = regexp.MustCompile(`(?m)run it alone: (.*)$`)

// failing runs a command in a shell, in which the odd tests fail, and returns what it
// prints.
func failing(t *testing.T, directory, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), "ALONE_FAILS=1", "CI=", "SDTCONVERT_ATTACK=", "SDTCONVERT_TESTS=", "SDTCONVERT_SUITE=")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("%s: no test fails:\n%s", line, out)
	}
	return string(out)
}

// TestCommandRunsOneTest runs tests of odd names, which fail, and then each by the command
// that it has logged: that one fails, and no other runs. The first command of all is run by
// `go test` itself, in another directory; the others by this program in its place, which
// needs no build.
func TestCommandRunsOneTest(t *testing.T) {
	t.Run("", TestOdd)
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, t.Name()+"/#00/")
	}
	out := failing(t, ".", os.Args[0]+" -test.v -test.run '^TestOdd$'")
	lines := command.FindAllStringSubmatch(out, -1)
	if len(lines) != len(odd) || strings.Count(out, "with number=") != (len(odd)+1)/2 {
		t.Fatalf("%d of %d tests say how to run them:\n%s", len(lines), len(odd), out)
	}
	directory := expect.Value(filepath.Abs("../../../docs"))(t)
	for i, line := range lines {
		whole, prefix := i%2 == 0, "go test "
		if whole {
			prefix = "SDTCONVERT_TESTS=all go test "
		}
		args, found := strings.CutPrefix(line[1], prefix)
		if race := "-race "; strings.HasPrefix(args, race) {
			args = args[len(race):]
		}
		args, inPackage := strings.CutPrefix(args, "sdtconvert/internal/testkit/alone -run ")
		if !found || !inPackage {
			t.Fatalf("the command of %q is %s", odd[i], line[1])
		}
		again := os.Args[0] + " -test.v -test.run " + args
		if i == 0 {
			again = line[1] + " -v"
		}
		out := failing(t, directory, again)
		failed := regexp.MustCompile(`(?m)^ +--- FAIL: TestOdd/(.*) \(\d`).FindAllStringSubmatch(out, -1)
		if len(failed) == 0 || failed[len(failed)-1][1] != names[i] || !strings.Contains(out, line[0]) || strings.Count(out, "it fails") != 1 {
			t.Errorf("%s runs\n%s", again, out)
		}
	}
}

// fake is a test that has a name and has failed.
type fake struct {
	testing.TB
	name     string
	log      []string
	cleanups []func()
}

func (f *fake) Name() string                 { return f.name }
func (f *fake) Helper()                      {}
func (f *fake) Failed() bool                 { return true }
func (f *fake) Cleanup(c func())             { f.cleanups = append(f.cleanups, c) }
func (f *fake) Logf(format string, a ...any) { f.log = append(f.log, fmt.Sprintf(format, a...)) }
func (f *fake) end() {
	for _, c := range slices.Backward(f.cleanups) {
		c()
	}
}

// TestReport: a subtest names the values of the product's test that it is in, and the tests
// around it say nothing more.
func TestReport(t *testing.T) {
	t.Setenv("SDTCONVERT_SUITE", "trixie")
	t.Setenv("SDTCONVERT_ATTACK", "5")
	t.Setenv("SDTCONVERT_TESTS", "")
	t.Setenv("CI", "true")
	around, row, within := &fake{name: "TestA"}, &fake{name: "TestA/amd64/bfd"}, &fake{name: "TestA/amd64/bfd/converted"}
	Report(around)
	ReportProduct(row, "machine=amd64, linker=bfd")
	Report(row)
	Report(within)
	for _, f := range []*fake{within, row, around} {
		f.end()
	}
	got := regexp.MustCompile(`-race `).ReplaceAllString(strings.Join(within.log, "\n"), "")
	want := "with machine=amd64, linker=bfd\nrun it alone: SDTCONVERT_ATTACK=5 scripts/test --all --suite trixie sdtconvert/internal/testkit/alone -run '^TestA$/^amd64$/^bfd$/^converted$'"
	if got != want || row.log != nil || around.log != nil {
		t.Errorf("got\n%s, want\n%s; and %q, %q", got, want, row.log, around.log)
	}
	loop := &fake{name: "TestLoop"}
	Report(loop)
	InProduct(loop)
	if loop.end(); len(loop.log) != 1 || !strings.Contains(loop.log[0], "scripts/test --all --suite trixie ") {
		t.Errorf("a test that chooses rows logs %q", loop.log)
	}
	for _, c := range []struct{ name, suite, all, want string }{
		{"TestA", "", "", "CI=true SDTCONVERT_ATTACK=5 go test PACKAGE -run '^TestA$'"},
		{"TestA", "", "all", "CI=true SDTCONVERT_ATTACK=5 SDTCONVERT_TESTS=all go test PACKAGE -run '^TestA$'"},
		{"TestA", "sid", "", "SDTCONVERT_ATTACK=5 scripts/test --suite sid PACKAGE -run '^TestA$'"},
		{"BenchmarkA", "", "", "CI=true SDTCONVERT_ATTACK=5 go test PACKAGE -run '^$' -bench '^BenchmarkA$'"},
	} {
		t.Setenv("SDTCONVERT_SUITE", c.suite)
		t.Setenv("SDTCONVERT_TESTS", c.all)
		got := strings.ReplaceAll(strings.Replace(Command(c.name, false), "-race ", "", 1), "sdtconvert/internal/testkit/alone", "PACKAGE")
		expect.Equal(t, c.want, got)
	}
}

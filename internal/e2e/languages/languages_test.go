package languages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/tools"
)

var (
	converter string // the program
	wrappers  string // the directory in which it has the names of linkers
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestLanguages`, &converter, func(directory string) error {
		wrappers = filepath.Join(directory, "wrappers")
		return tools.LinkAs(wrappers, converter, "ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold")
	})
}

// installed is the directory of wrappers that the page names.
const installed = "/usr/local/libexec/sdtconvert"

// languages are the sections of the page, and the tools that each takes.
var languages = []struct {
	section string
	tools   []string
	// rare reports that Debian has no such compiler: a test without one is skipped in CI, too.
	rare bool
}{
	{"Rust", []string{"cargo", "rustc", "gcc"}, false},
	{"Go, with C in it", []string{"go", "gcc"}, false},
	{"Fortran", []string{"gfortran"}, false},
	{"Ada", []string{"gnatmake", "gnatbind", "gnatlink"}, false},
	{"D", []string{"gdc", "ldc2"}, false},
	{"Zig", []string{"zig", "cc"}, true},
}

func TestEachLanguageHasItsTest(t *testing.T) {
	sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(page(t), -1)
	var want, got []string
	for _, s := range sections[1:] { // behind what they have in common
		want = append(want, s[1])
	}
	for _, l := range languages {
		got = append(got, l.section)
	}
	if !slices.Equal(got, want) {
		t.Errorf("tests of %q, and sections %q", got, want)
	}
}

func TestLanguages(t *testing.T) {
	for _, l := range product.Few(t.Name(), languages) {
		t.Run(l.section, func(t *testing.T) {
			t.Parallel()
			if l.rare && tools.Lacks(l.tools...) {
				t.Skipf("needs %v", l.tools)
			}
			tools.Need(t, append([]string{"gdb", "sh"}, l.tools...)...)
			s := newSection(t, l.section)
			for i, steps := range s.steps {
				t.Run(strconv.Itoa(i+1), func(t *testing.T) { s.run(t, steps) })
			}
		})
	}
}

func page(t *testing.T) string {
	t.Helper()
	return string(disk.Read(t, tools.Root("docs", "languages.md")))
}

// section is what the page shows for one language, and the programs that it links to.
type section struct {
	files map[string]string
	steps []string // shell commands, each of which build shop and shop-debug
	trace string   // commands of gdb
}

var (
	file  = regexp.MustCompile("(?ms)`([\\w./-]+)`:\n\n```\\w*\n(.*?)^```$")
	link  = regexp.MustCompile(`\]\(\.\./(examples/languages/\w+/([\w./-]+))\)`)
	shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	trace = regexp.MustCompile(`(?ms)^\$ cat stop.gdb\n(.*?)^\$ gdb`)
)

func newSection(t *testing.T, name string) *section {
	t.Helper()
	text := page(t)
	s := &section{files: map[string]string{}, trace: trace.FindStringSubmatch(text)[1]}
	_, text, ok := strings.Cut(text, "\n## "+name+"\n")
	if !ok {
		t.Fatalf("docs/languages.md has no section %q", name)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for _, f := range file.FindAllStringSubmatch(text, -1) {
		s.files[f[1]] = f[2]
	}
	for _, l := range link.FindAllStringSubmatch(text, -1) {
		s.files[l[2]] = string(disk.Read(t, tools.Root(filepath.FromSlash(l[1]))))
	}
	for _, c := range shell.FindAllStringSubmatch(text, -1) {
		s.steps = append(s.steps, c[1])
	}
	if len(s.files) == 0 || len(s.steps) == 0 {
		t.Fatalf("section %q shows %d files and %d builds", name, len(s.files), len(s.steps))
	}
	return s
}

// run takes the steps of one build, and looks at its two programs.
func (s *section) run(t *testing.T, steps string) {
	t.Parallel()
	directory := t.TempDir()
	for name, text := range s.files {
		path := filepath.Join(directory, name)
		expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
		disk.Write(t, path, text)
	}
	steps = strings.ReplaceAll(steps, installed, wrappers)
	if strings.Contains(steps, "linker-features") && rustIsOlder(t, 90) {
		steps = strings.ReplaceAll(steps, " -C linker-features=-lld", "")
	}
	here := tools.Command{Directory: directory, Env: []string{
		"PATH=" + filepath.Dir(converter) + ":" + os.Getenv("PATH"),
		"CARGO_NET_OFFLINE=true", "CARGO_TARGET_DIR=target", "GOFLAGS=-mod=mod", "GOWORK=off",
		"ZIG_LOCAL_CACHE_DIR=" + directory, "ZIG_GLOBAL_CACHE_DIR=" + directory,
	}}
	here.Must(t, "sh", "-ec", steps)
	for _, program := range []string{"shop-debug", "shop"} {
		t.Run(program, func(t *testing.T) { s.check(t, filepath.Join(directory, program)) })
	}
}

// rustIsOlder reports whether rustc is older than 1.<minor>.
func rustIsOlder(t *testing.T, minor int) bool {
	t.Helper()
	out := tools.Output(t, "rustc", "--version")
	var got int
	expect.Value(fmt.Sscanf(out, "rustc 1.%d.", &got))(t, "%q", out)
	return got < minor
}

// check runs a program, lists it, and traces it.
func (s *section) check(t *testing.T, program string) {
	if out := tools.Must(t, program); !isSum(out) {
		t.Errorf("it prints %q", out)
	}
	list := tools.Must(t, converter, "list", "-v", program)
	for _, want := range []string{" sent\n", " placed\n", "shop_placed_semaphore"} {
		expect.Contains(t, list, want)
	}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "      site ") && !strings.Contains(line, "  disabled") {
			t.Errorf("a site that is not disabled: %s", line)
		}
	}
	script := filepath.Join(t.TempDir(), "stop.gdb")
	disk.Write(t, script, s.trace)
	out := tools.Must(t, "gdb", "-nx", "-batch", "-x", script, program)
	var got []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "placed ") || strings.HasPrefix(line, "sent ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{"placed 1 tea", "sent 1 21", "placed 2 milk", "sent 2 28", "placed 3 biscuits", "sent 3 56"}
	if !slices.Equal(got, want) || !strings.Contains(strings.Join(strings.Fields(out), " "), "sum 105") {
		t.Errorf("gdb sees %q, want %q:\n%s", got, want, out)
	}
}

// isSum compares what a program prints, but for blanks.
func isSum(out string) bool { return strings.Join(strings.Fields(out), " ") == "sum 105" }

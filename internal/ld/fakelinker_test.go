package ld

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/archives"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// envSteps has the test program act as a linker. Each line of its value is a step.
const envSteps = "SDTCONVERT_TEST_LINKER"

// The linker ends by syscall.Exit, which neither waits for the race detector nor writes of coverage.
func TestMain(m *testing.M) {
	if steps := os.Getenv(envSteps); steps != "" {
		for step := range strings.Lines(steps) {
			takeStep(strings.Fields(step))
		}
		syscall.Exit(0)
	}
	os.Exit(m.Run())
}

// takeStep takes one step of the linker of tests. What it reads is printed to standard output.
func takeStep(words []string) {
	switch words[0] {
	case "open": // files
		for _, path := range words[1:] {
			readInput(path)
		}
	case "definitions": // reads the input that defines what the link lacks
		self, err := os.Executable()
		if err != nil {
			fail(err)
		}
		fmt.Printf("definitions: %s\n", describe(read(self)))
	case "copy": // a file to another
		if err := os.WriteFile(words[2], readInput(words[1]), 0o666); err != nil {
			fail(err)
		}
	case "write": // a file
		if err := os.WriteFile(words[1], []byte(words[2]), 0o666); err != nil {
			fail(err)
		}
	case "arguments":
		fmt.Println(strings.Join(os.Args[1:], " "))
	case "run": // another program, which prints a file
		out, err := exec.Command(words[1], words[2:]...).Output()
		if err != nil {
			fail(err)
		}
		fmt.Printf("%s: %s\n", words[1], describe(out))
	case "exit": // with a status
		status, _ := strconv.Atoi(words[1])
		syscall.Exit(status)
	case "die": // of a signal
		self, _ := os.FindProcess(os.Getpid())
		self.Signal(syscall.SIGKILL)
		select {}
	case "generate": // if the link is for code alone, writes copies of files as that code
		for _, arg := range os.Args[1:] {
			if prefix, ok := strings.CutPrefix(arg, "--lto-obj-path="); ok && slices.Contains(os.Args, "--lto-partitions=1") {
				generateCode(prefix, words[1:])
				syscall.Exit(0)
			}
		}
	default:
		fail(fmt.Errorf("unknown step %s", words[0]))
	}
}

// generateCode writes a copy of each file, as lld writes the code of link-time optimisation.
func generateCode(prefix string, files []string) {
	for i, file := range files {
		if i > 0 {
			prefix += strconv.Itoa(i)
		}
		if err := os.WriteFile(prefix, read(file), 0o666); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	if errors.Is(err, syscall.EIO) {
		time.Sleep(time.Minute) // the link is stopped: a signal is on its way
	}
	fmt.Fprintf(os.Stderr, "linker: %v\n", err)
	syscall.Exit(1)
}

func read(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		fail(err)
	}
	return data
}

func readInput(path string) []byte {
	data := read(path)
	fmt.Printf("%s: %s\n", path, describe(data))
	return data
}

// describe says what bytes hold, as far as the names in them tell.
func describe(data []byte) string {
	switch has := func(text string) bool { return bytes.Contains(data, []byte(text)) }; {
	case string(data) == "!<arch>\n":
		return "empty archive"
	case bytes.HasPrefix(data, []byte("!<thin>\n")):
		return "thin archive"
	case has("__dtrace_probe_"), has("__dtrace_isenabled_"):
		return "stubs"
	case has("sdt_"):
		return "probe objects"
	case bytes.HasPrefix(data, []byte("\x7fELF")):
		return "ELF"
	}
	return strings.TrimSpace(string(data))
}

// thin writes a thin archive.
func thin(t *testing.T, name string, members ...string) {
	t.Helper()
	disk.Write(t, name, archives.Thin(files(t, members)...))
}

// regular writes an archive.
func regular(t *testing.T, name string, members ...string) {
	t.Helper()
	disk.Write(t, name, archives.Regular(files(t, members)...))
}

func files(t *testing.T, names []string) (files []objects.File) {
	t.Helper()
	for _, name := range names {
		files = append(files, objects.File{Name: name, Data: disk.Read(t, name)})
	}
	return files
}

// fakeLink is a link by the linker of tests.
type fakeLink struct {
	path    string
	linker  string // its name, "" for ld
	steps   string
	args    string
	change  func(*Options)
	environ []string

	stdout, stderr string
	status         process.Status
	err            error
}

// lockedBuilder is what the linker and the program write to at once.
type lockedBuilder struct {
	mu sync.Mutex
	strings.Builder
}

func (b *lockedBuilder) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(text)
}

// run runs the link, and sets its result.
func (f *fakeLink) run(t *testing.T) {
	t.Helper()
	name := f.linker
	if name == "" {
		name = "ld"
	}
	f.path = filepath.Join(t.TempDir(), name)
	expect.OK(t, os.Symlink(expect.Value(os.Executable())(t), f.path))
	var stdout, stderr lockedBuilder
	p := &process.Process{
		Stdout: &stdout, Stderr: &stderr,
		Environ: append([]string{envSteps + "=" + f.steps, "TMPDIR=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, f.environ...),
	}
	o := Options{Linker: f.path, Convert: convert.Options{Jobs: 2, Patch: testOptions()}}
	if f.change != nil {
		f.change(&o)
	}
	f.status, f.err = Run(p, o, "ld", strings.Fields(f.args))
	f.stdout, f.stderr = stdout.String(), stderr.String()
}

// temporaryObject is the path of the object that a link in place adds.
var temporaryObject = regexp.MustCompile(`\S+/sdtconvert-\d+\.o`)

// report returns what the link printed, how it ended, and whether there is an output, called out.
func (f *fakeLink) report() string {
	var report strings.Builder
	printLines := func(kind, text string) {
		for line := range strings.Lines(text) {
			fmt.Fprintf(&report, "%s %s\n", kind, strings.TrimSuffix(line, "\n"))
		}
	}
	printLines("out", f.stdout)
	printLines("err", f.stderr)
	switch {
	case f.err != nil:
		printLines("error", f.err.Error())
	case f.status.Signal != nil:
		printLines("exit", f.status.Signal.String())
	case f.status.Code != 0:
		printLines("exit", strconv.Itoa(f.status.Code))
	}
	if data, err := os.ReadFile("out"); err == nil {
		printLines("output", describe(data))
	}
	self, _ := os.Executable()
	text := strings.NewReplacer(filepath.Dir(f.path), "DIR", self, "SELF").Replace(report.String())
	return temporaryObject.ReplaceAllString(text, "TEMPORARY")
}

// testOptions are the options of a command without flags.
func testOptions() patch.Options {
	return patch.Options{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}
}

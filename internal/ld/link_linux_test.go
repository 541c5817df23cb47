package ld

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/supervise"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
)

// linkOptions are the options that a case of testdata/links.txt may name.
var linkOptions = map[string]func(*Options){
	"off":                 func(o *Options) { o.Off = true },
	"in-place":            func(o *Options) { o.InPlace = true },
	"no-stubs":            func(o *Options) { o.NoStubs = true },
	"no-undefined-probes": func(o *Options) { o.NoUndefinedProbes = true },
	"drop-relocations":    func(o *Options) { o.Convert.Patch.DropRelocations = true },
	"freebsd": func(o *Options) {
		o.Convert.Patch.Layout, o.Convert.Patch.FixedLayout = linkerset.Layout{Format: linkerset.FreeBSD}, true
	},
}

// TestLinks runs the links of testdata/links.txt, in which a case begins with its name. Its lines are
//
//	object NAME OBJECT      a committed object
//	text NAME TEXT          a file
//	archive, thin NAME FILE...
//	linker NAME             by which the linker is known
//	option NAME             of linkOptions
//	link ARGUMENT...
//	step WORD...            of the linker: see takeStep
//
// and then the report: out and err, what the link prints; exit, its status or signal; error, which Run returns; and
// output, what the file out holds. DIR stands for the directory of the linker, SELF for the program, and TEMPORARY
// for a file in TMPDIR.
func TestLinks(t *testing.T) {
	supervisor, err := supervise.New(supervise.Options{})
	if err != nil {
		tools.Unavailable(t, err.Error())
	}
	supervisor.Close()
	cases := strings.Split(string(disk.Read(t, "testdata/links.txt")), "\n== ")[1:]
	for _, text := range cases {
		name, lines, _ := strings.Cut(text, "\n")
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			var link fakeLink
			var want strings.Builder
			for line := range strings.Lines(lines) {
				if line = strings.TrimSuffix(line, "\n"); line != "" && !link.prepare(t, line) {
					fmt.Fprintln(&want, line)
				}
			}
			link.run(t)
			expect.Equal(t, want.String(), link.report())
		})
	}
}

// prepare takes in a line of a case. It returns false for one that says what the link prints.
func (f *fakeLink) prepare(t *testing.T, line string) bool {
	t.Helper()
	command, rest, _ := strings.Cut(line, " ")
	name, value, _ := strings.Cut(rest, " ")
	if command != "link" && strings.Contains(name, "/") {
		expect.OK(t, os.MkdirAll(filepath.Dir(name), 0o777))
	}
	switch command {
	case "object":
		disk.Write(t, name, objects.Read(t, value))
	case "text":
		disk.Write(t, name, value+"\n")
	case "archive":
		regular(t, name, strings.Fields(value)...)
	case "thin":
		thin(t, name, strings.Fields(value)...)
	case "linker":
		f.linker = rest
	case "option":
		f.change = linkOptions[rest]
	case "link":
		f.args = rest
	case "step":
		f.steps += rest + "\n"
	case "out", "err", "error", "exit", "output":
		return false
	default:
		t.Fatalf("unknown line %q", line)
	}
	return true
}

package design

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

// outside builds testdata/program in a module of its own, which has this module
// from its directory. It needs no network: what this module is made of is there.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyFile(t, filepath.Join("testdata", "program", "main.go"), filepath.Join(dir, "main.go"))
	copyFile(t, tools.Root("go.sum"), filepath.Join(dir, "go.sum"))
	mod := fmt.Sprintf("module outside\n\ngo 1.26\n\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", module, tools.Root())
	disk.Write(t, filepath.Join(dir, "go.mod"), mod)
	program := filepath.Join(dir, "program")
	command := tools.Command{Directory: dir, Env: []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off"}}
	command.Must(t, "go", "build", "-o", program, ".")
	return program
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	disk.Write(t, to, disk.Read(t, from))
}

// A program that is not part of this module lists and converts as sdtconvert does.
func TestProgramOfAnotherModule(t *testing.T) {
	program, command := outside(t), expect.Value(tools.Build(t.TempDir()))(t)
	for _, c := range []struct {
		object  string
		outcome string // "converted", "unchanged" or "refused"
	}{
		{"calls.amd64-clang14-O1.o", "converted"},
		{"calls.arm64-gcc12-O2.o", "converted"},
		{"calls.riscv64-gcc12-O2.o", "converted"},
		{"none.amd64-gcc12-O2.o", "unchanged"},
		{"address.amd64-gcc12-data.o", "refused"},
	} {
		t.Run(c.object, func(t *testing.T) {
			dir := t.TempDir()
			input := filepath.Join(dir, c.object)
			copyFile(t, filepath.Join(objects.Directory(), c.object), input)

			ours, theirs := filepath.Join(dir, "ours.o"), filepath.Join(dir, "theirs.o")
			listed, _, ourErr := tools.Command{}.Apart(command, "inspect", "--json", input)
			_, wantRefusals, convertErr := tools.Command{}.Apart(command, "convert", "--layout=pairs", "-o", ours, input)
			printed, refusals, err := tools.Command{}.Apart(program, input, theirs)
			if refused := c.outcome == "refused"; refused != (err != nil) || refused != (convertErr != nil) {
				t.Fatalf("%v, and sdtconvert: %v", err, convertErr)
			}
			if c.outcome == "refused" {
				checkRefusals(t, refusals, wantRefusals)
			} else if ourErr != nil {
				t.Fatal(ourErr)
			}
			expect.Equal(t, sites(t, listed), printed, "sites")
			converted, err := os.ReadFile(theirs)
			if (err == nil) != (c.outcome == "converted") || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if c.outcome != "converted" {
				return
			}
			want := disk.Read(t, ours)
			if !bytes.Equal(converted, want) {
				t.Error("the object differs from that of sdtconvert")
			}
			if before := objects.Read(t, c.object); bytes.Equal(converted, before) {
				t.Error("the object was not converted")
			}
		})
	}
}

// checkRefusals wants the same refusals, a line each, but for what the command
// puts in front of them.
func checkRefusals(t *testing.T, got, want string) {
	t.Helper()
	if got == "" {
		t.Error("got no reason")
	}
	for line := range strings.Lines(got) {
		expect.Contains(t, want, strings.TrimSpace(line))
	}
}

// sites prints what inspect has listed as the program does, which lists no refused
// sites.
func sites(t *testing.T, listed string) string {
	t.Helper()
	var manifest struct {
		Objects []struct {
			Sites []struct {
				Section, Kind, Probe, State string
				Offset                      uint64
			}
		}
	}
	expect.OK(t, json.Unmarshal([]byte(listed), &manifest))
	var b strings.Builder
	for _, o := range manifest.Objects {
		for _, s := range o.Sites {
			if s.State != "refused" {
				fmt.Fprintf(&b, "%s+%#x %s %s\n", s.Section, s.Offset, s.Kind, s.Probe)
			}
		}
	}
	return b.String()
}

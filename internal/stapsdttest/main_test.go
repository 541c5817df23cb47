package stapsdttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Where the tests make files, the converter, and the folder of sdt.h.
var scratch, converter, include string

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	if include, err = filepath.Abs("../../include"); err == nil {
		scratch, err = os.MkdirTemp("", "stapsdttest-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	converter = filepath.Join(scratch, "sdtconvert")
	if _, err := try("go", "build", "-o", converter, "sdtconvert/cmd/sdtconvert"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// need skips a test without which a tool is missing. In CI every tool is there.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			unavailable(t, "no "+tool)
		}
	}
}

func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// patience is the longest that a command may take.
const patience = 2 * time.Minute

// try runs a command and returns what it wrote to both outputs.
func try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out[:min(len(out), 4000)])
	}
	return string(out), err
}

// must is try for what has to succeed.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := try(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

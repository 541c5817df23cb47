//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// recorder is a linker that records its arguments and its environment, and what it is
// to read.
const recorder = `#!/bin/sh
printf '%s\n' "$@" >"$RECORD.words"
echo "$SDTCONVERT_DEPTH" >"$RECORD.depth"
for word; do
	case $word in *.o) ./ld.cat "$word" ;; esac
done >"$RECORD.read"
echo "reading $1"
echo "wrong with $1" >&2
exit "$STATUS"
`

// Links that run at once in one process do not know of each other.
func TestLinksAtOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	expect.OK(t, os.WriteFile("linker", []byte(recorder), 0o777))
	// A linker is what has the name of one.
	cat := expect.Value(exec.LookPath("cat"))(t)
	expect.OK(t, os.WriteFile("ld.cat", expect.Value(os.ReadFile(cat))(t), 0o777))
	probes := objects.Read(t, "calls.amd64-gcc12-O2.o")
	const links = 4
	var all sync.WaitGroup
	for i := range links {
		all.Go(func() { linkAlone(t, i, probes) })
	}
	all.Wait()
}

// linkAlone links in a directory of its own: an object with probes, or, every other time,
// one that is left to the linker as it is.
func linkAlone(t *testing.T, i int, object []byte) {
	directory := fmt.Sprintf("link%d", i)
	temp, input, record := filepath.Join(directory, "tmp"), filepath.Join(directory, "first.o"), filepath.Join(directory, "record")
	off := i%2 == 1
	if err := os.MkdirAll(temp, 0o777); err != nil {
		t.Error(err)
		return
	}
	if err := os.WriteFile(input, object, 0o666); err != nil {
		t.Error(err)
		return
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + temp, "RECORD=" + record, fmt.Sprintf("STATUS=%d", i)}
	if off {
		environ = append(environ, "SDTCONVERT=off")
	}
	var stdout, stderr bytes.Buffer
	p := newProgram(&process.Process{Stdout: &stdout, Stderr: &stderr, Environ: environ})
	status := p.run("sdtconvert", []string{"ld", "--no-stubs", "--linker", "./linker", "--", input, "-o", "out"})
	expect.Equal(t, i, status, "%s: exit status", directory)
	if got, want := stdout.String()+stderr.String(), "reading "+input+"\nwrong with "+input+"\n"; got != want {
		t.Errorf("%s: says %q, want %q", directory, got, want)
	}
	text := func(what string) string {
		data, err := os.ReadFile(record + "." + what)
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	words := strings.Fields(text("words"))
	expect.Equal(t, []string{input, "-o", "out"}, words, "%s: the linker's words", directory)
	expect.Equal(t, "1\n", text("depth"), "%s", directory)
	if same := text("read") == string(object); same != off {
		t.Errorf("%s: the linker read what it was called with: %v", directory, same)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%s: left behind: %v, %v", directory, left, err)
	}
}

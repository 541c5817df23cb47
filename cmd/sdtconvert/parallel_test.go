package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// aRun is a run of the program, with all that it has of a process.
type aRun struct {
	args  []string
	stdin string
	env   []string
}

// outcome is all that comes of a run.
type outcome struct {
	Status         int
	Stdout, Stderr string
	Files          map[string]string
}

// in runs the program on files of a directory of its own, which is F in all texts.
func (r *aRun) in(t *testing.T, directory string) outcome {
	here := func(text string) string { return strings.ReplaceAll(text, "F/", directory+"/") }
	args := make([]string, len(r.args))
	for i := range args {
		args[i] = here(r.args[i])
	}
	env := make([]string, len(r.env))
	for i := range env {
		env[i] = here(r.env[i])
	}
	for _, name := range []string{"calls.amd64-gcc12-O2.o", "bad.riscv64-gcc12-jal.o", "plain.txt"} {
		data := []byte("text\n")
		if strings.HasSuffix(name, ".o") {
			data = objects.Read(t, name)
		}
		if err := os.WriteFile(filepath.Join(directory, name), data, 0o666); err != nil {
			t.Error(err)
		}
	}
	var out, errs bytes.Buffer
	p := newProgram(&process.Process{Stdin: strings.NewReader(r.stdin), Stdout: &out, Stderr: &errs, Environ: env})
	o := outcome{Status: p.run("sdtconvert", args), Files: map[string]string{}}
	there := strings.NewReplacer(directory, "F", strings.TrimPrefix(directory, "/"), "F") // absolute, or from the root
	o.Stdout, o.Stderr = there.Replace(out.String()), there.Replace(errs.String())
	names, err := filepath.Glob(filepath.Join(directory, "*"))
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		o.Files[filepath.Base(name)] = string(data)
	}
	return o
}

// Runs of the program in one process do not see of each other, whatever their
// commands are.
func TestRunsAtTheSameTime(t *testing.T) {
	const good, bad = "F/calls.amd64-gcc12-O2.o", "F/bad.riscv64-gcc12-jal.o"
	runs := []aRun{
		{args: []string{"--json", "--stapsdt", good}},
		{args: []string{"-v", "-j", "3", "-o", "F/out.o", good}},
		{args: []string{good, bad, "F/plain.txt"}},
		{args: []string{"inspect", good, bad}},
		{args: []string{"inspect", "--json", "--prefix", "other_", good}},
		{args: []string{"sites", "--asm", good}},
		{args: []string{"stubs", "-o", "F/stubs.o", good}},
		{args: []string{"list", "-v", good}},
		{args: []string{"check", "--format=github", good, bad}, env: []string{"GITHUB_WORKSPACE=F/"}},
		{args: []string{"check", "--format=github", good, bad}, env: []string{"GITHUB_WORKSPACE=/"}},
		{args: []string{"resolve", good}, stdin: ".text+0x4\n.text+0x20 and more\n"},
		{args: []string{"resolve", "--json", good}, stdin: "#1 .text+0x10\nnonsense\n"},
		{args: []string{"version"}},
		{args: []string{"help", "list"}},
		{args: []string{"--layout=none", good}},
	}
	alone := make([]outcome, len(runs))
	for i := range runs {
		alone[i] = runs[i].in(t, t.TempDir())
	}
	for _, pair := range [][2]int{{8, 9}, {10, 11}, {3, 4}} {
		if alone[pair[0]].Stdout == alone[pair[1]].Stdout {
			t.Errorf("%q and %q say the same", runs[pair[0]].args, runs[pair[1]].args)
		}
	}
	const times = 4
	together := make([]outcome, times*len(runs))
	var wg sync.WaitGroup
	for i := range together {
		directory := t.TempDir()
		wg.Go(func() { together[i] = runs[i%len(runs)].in(t, directory) })
	}
	wg.Wait()
	statuses := map[int]bool{}
	for i := range together {
		statuses[together[i].Status] = true
		expect.Equal(t, alone[i%len(runs)], together[i], "%q", runs[i%len(runs)].args)
	}
	expect.Equal(t, fmt.Sprint(map[int]bool{exitOK: true, exitFailed: true, exitUsage: true}), fmt.Sprint(statuses), "exit statuses")
}

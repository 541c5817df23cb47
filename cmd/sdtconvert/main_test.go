package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/process"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the program does now into the golden files")

// TestMain lets the scripts run this test binary as sdtconvert.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sdtconvert": main})
}

// corpus lists the committed objects.
func corpus(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/objs/*.o")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no objects in testdata/objs: %v", err)
	}
	return paths
}

// runWith runs the program in this process.
func runWith(stdout, stderr io.Writer, args ...string) int {
	return newProgram(&process.Process{Stdout: stdout, Stderr: stderr, Environ: os.Environ()}).run("sdtconvert", args)
}

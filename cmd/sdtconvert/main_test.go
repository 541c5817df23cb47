package main

import (
	"flag"
	"io"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sdtconvert/internal/process"
)

var update = flag.Bool("update", false, "write what the program does now into the golden files")

// TestMain lets the scripts run this test binary as sdtconvert.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sdtconvert": main, "sdtconvert-cc": main})
}

// runWith runs the program in this process.
func runWith(stdout, stderr io.Writer, args ...string) int {
	return newProgram(&process.Process{Stdout: stdout, Stderr: stderr, Environ: os.Environ()}).run("sdtconvert", args)
}

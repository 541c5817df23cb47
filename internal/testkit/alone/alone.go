// Package alone makes a test that fails log the command that runs it alone.
package alone

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

// Report makes t log how to run it alone, if it fails. values says which machine, compiler,
// linker and so on a test of a product is of; it may be empty.
func Report(t testing.TB, values string) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if values != "" {
			t.Logf("with %s", values)
		}
		t.Logf("run it alone: %s", command(t.Name()))
	})
}

// command returns a command for a shell, in the project's directory, that runs a test of the
// package under test alone, with what the environment says of this run.
func command(test string) string {
	words := []string{"go test"}
	if suite := os.Getenv("SDTCONVERT_SUITE"); suite != "" {
		words = []string{"scripts/test --suite " + suite}
	}
	for _, name := range []string{"SDTCONVERT_ATTACK", "SDTCONVERT_TESTS"} {
		if value := os.Getenv(name); value != "" {
			words = append([]string{name + "=" + value}, words...)
		}
	}
	path := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		path = strings.TrimSuffix(info.Path, ".test")
	}
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	pattern := strings.ReplaceAll(strings.Join(parts, "/"), "'", `'\''`)
	return strings.Join(append(words, path, "-run", "'"+pattern+"'"), " ")
}

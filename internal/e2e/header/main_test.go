package header

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/shared"
	"sdtconvert/internal/testkit/tools"
)

var (
	files     shared.Files // what the tests make
	converter string
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	os.Exit(tools.Main(m, `TestLink|TestOperands|TestRelocatable|TestSemaphores$`, func(directory, program string) error {
		files.Directory, converter = directory, program
		return nil
	}))
}

// output appends `-o <a file>` to a command and runs it, once for all tests. The
// file is called base.
func output(t *testing.T, base string, command ...string) string {
	t.Helper()
	return files.Must(t, base, command, func(out string) error {
		_, err := tools.Try(command[0], append(slices.Clone(command[1:]), "-o", out)...)
		return err
	})
}

// sortedLines returns the lines of a text that are not empty.
func sortedLines(text string) []string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines
}

// checkLines compares sorted lines, and shows what differs.
func checkLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for _, d := range difference(want, got) {
		t.Errorf("%s: missing: %s", what, d)
	}
	for _, d := range difference(got, want) {
		t.Errorf("%s: too much: %s", what, d)
	}
}

// difference returns what is oftener in a than in b.
func difference(a, b []string) []string {
	count := map[string]int{}
	for _, s := range b {
		count[s]++
	}
	var d []string
	for _, s := range a {
		if count[s]--; count[s] < 0 {
			d = append(d, s)
		}
	}
	return d
}

package header

import (
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/shared"
	"sdtconvert/internal/testkit/tools"
)

var (
	files     shared.Files // what the tests make
	converter string
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestLink|TestOperands|TestRelocatable|TestSemaphores$`, &converter, func(directory string) error {
		files.Directory = directory
		return nil
	})
}

// output appends `-o <a file>` to a command and runs it, once for all tests. The
// file is called base.
func output(t *testing.T, base string, command ...string) string {
	t.Helper()
	return expect.Value(files.Run(base, command[0], command[1:]...))(t)
}

// sortedLines returns the lines of a text that are not empty.
func sortedLines(text string) []string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines
}

// checkLines compares lines in any order.
func checkLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	expect.Equal(t, slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got)), "%s", what)
}

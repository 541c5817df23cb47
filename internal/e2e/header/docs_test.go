package header

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/tools"
)

var docProgram = regexp.MustCompile("(?s)```c\n(/\\* (\\w+\\.c) \\*/\n.*?)```")

// docSource writes the program of a page of docs/ to a file: the block of C that
// begins with the file's name.
func docSource(t *testing.T, page string) string {
	t.Helper()
	text := disk.Read(t, tools.Root("docs", page))
	match := docProgram.FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s holds no program", page)
	}
	path := filepath.Join(t.TempDir(), string(match[2]))
	disk.Write(t, path, match[1])
	return path
}

// TestDocs compiles the program with a probe that docs/first-steps.md shows, and has
// the one of docs/reading.md read it.
func TestDocs(t *testing.T) {
	tools.Need(t, "gcc")
	gcc := append([]string{"gcc", "-std=c99", "-O2", "-I" + include, "-c"}, strict...)
	count, reader := docSource(t, "first-steps.md"), docSource(t, "reading.md")

	object := convert(t, output(t, "count.o", append(gcc, count)...))
	output(t, "count", "gcc", object)
	with := convert(t, output(t, "count.o", append(gcc, "-Dmain=count_main", count)...))
	exe := output(t, "reader", "gcc", with, output(t, "reader.o", append(gcc, reader)...))
	out := tools.Must(t, exe)
	for _, part := range []string{"count:::end__of__line ", " args[0]: int", " args[1]: long"} {
		if strings.Count(out, part) != 1 {
			t.Errorf("the reader prints %q, not %q once", out, part)
		}
	}

	// Unconverted it has no probes; as calls they are missing.
	plain := output(t, "count", "gcc", output(t, "count.o", append(gcc, count)...))
	if out := tools.Must(t, "sh", "-c", "printf 'a\\nb\\n' | "+plain); out != "2 lines\n" {
		t.Errorf("unconverted it prints %q", out)
	}
	_, err := tools.Try("gcc", output(t, "count.o", append(gcc, "-DSDT_CALLS", count)...), "-o", filepath.Join(t.TempDir(), "count"))
	if err == nil || !strings.Contains(err.Error(), "__dtrace_probe_count___end__of__line") {
		t.Errorf("linked without conversion: %v", err)
	}
}

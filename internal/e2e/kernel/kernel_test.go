package kernel

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/tools"
)

// every is the share of the kernel's modules that is looked at: one in so many.
const every = 40

func TestMain(m *testing.M) {
	tools.Short(`TestFreeBSDLinker`)
	os.Exit(m.Run())
}

// TestModules converts the __fentry__ calls of kernel modules, and lets objdump
// judge that these calls are nops afterwards and that nothing else has changed.
func TestModules(t *testing.T) {
	tools.Need(t, "apt-get")
	tools.Need(t, "objdump")
	tool := build(t)
	modules := findModules(t)
	total := 0
	for i := 0; i < len(modules); i += every {
		total += convertModule(t, tool, modules[i])
	}
	if total == 0 {
		t.Fatal("no module has a call of __fentry__")
	}
	t.Logf("%d calls in %d of %d modules", total, (len(modules)+every-1)/every, len(modules))
}

func build(t *testing.T) string {
	t.Helper()
	return expect.Value(tools.Build(t.TempDir()))(t)
}

func findModules(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("../../../scripts/kernel-modules").Output()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no modules: %v", err) // there may be no network
	} else if err != nil {
		t.Fatal(err)
	}
	directory := strings.TrimSpace(string(out))
	var modules []string
	err = filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".ko") {
			modules = append(modules, path)
		}
		return err
	})
	if err != nil || len(modules) == 0 {
		t.Fatalf("no modules in %s: %v", directory, err)
	}
	return modules
}

// convertModule returns the number of calls in a module.
func convertModule(t *testing.T, tool, module string) int {
	t.Helper()
	converted := filepath.Join(t.TempDir(), filepath.Base(module))
	tools.Output(t, tool, "--symbol", "__fentry__", "-o", converted, module)
	calls := 0
	before, after := disassemble(t, module), disassemble(t, converted)
	if len(before) != len(after) {
		t.Fatalf("%s: %d lines of code, and %d before", module, len(after), len(before))
	}
	for i := range before {
		want := before[i]
		if call, ok := asNop(want); ok {
			want = call
			calls++
		}
		if after[i] != want {
			t.Fatalf("%s: got %q, want %q, before %q", module, after[i], want, before[i])
		}
	}
	checkListing(t, tool, converted, functionsOf(before))
	if out := tools.Output(t, "readelf", "-rW", converted); strings.Contains(out, " __fentry__ ") {
		t.Errorf("%s: a relocation against __fentry__ is left", module)
	}
	return calls
}

// disassemble returns the lines of objdump that are code, with their
// relocations. The addend of R_X86_64_NONE is left out: it counts records.
func disassemble(t *testing.T, module string) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(tools.Output(t, "objdump", "-drw", module)) {
		if strings.Contains(line, "file format") {
			continue
		}
		if i := strings.Index(line, "sdt_instances_set"); i >= 0 {
			line = line[:i+len("sdt_instances_set")]
		}
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return lines
}

// asNop returns what the line of a call of __fentry__ has to become.
func asNop(line string) (string, bool) {
	fields := strings.Split(line, "\t")
	if len(fields) != 5 || fields[4] != "__fentry__-0x4" {
		return "", false
	}
	var at uint64
	if _, err := fmt.Sscanf(strings.TrimSpace(fields[3]), "%x: R_X86_64_PLT32", &at); err != nil {
		return "", false
	}
	return fmt.Sprintf("%s\t0f 1f 44 00 00       \tnopl   0x0(%%rax,%%rax,1)\t%x: R_X86_64_NONE\tsdt_instances_set", fields[0], at), true
}

// functionsOf lists where the functions begin that call __fentry__, by objdump's
// labels: section+offset.
func functionsOf(disassembly []string) []string {
	var starts []string
	section, start := "", uint64(0)
	for _, line := range disassembly {
		if name, ok := strings.CutPrefix(line, "Disassembly of section "); ok {
			section = strings.TrimSuffix(name, ":")
		} else if at, _, ok := strings.Cut(line, " <"); ok && strings.HasSuffix(line, ">:") {
			start, _ = strconv.ParseUint(at, 16, 64)
		} else if _, ok := asNop(line); ok {
			starts = append(starts, fmt.Sprintf("%s+%#x", section, start))
		}
	}
	slices.Sort(starts)
	return starts
}

// list returns the probes of a module.
func list(t *testing.T, tool, module string) []listjson.Probe {
	t.Helper()
	return listjson.Probes(t, tools.Output(t, tool, "list", "--json", module))
}

// checkListing compares the functions of a listing.
func checkListing(t *testing.T, tool, module string, want []string) {
	t.Helper()
	if len(want) == 0 {
		return
	}
	var got []string
	for _, p := range list(t, tool, module) {
		for _, s := range p.Sites {
			at := expect.Value(strconv.ParseUint(s.Address, 0, 64))(t)
			got = append(got, fmt.Sprintf("%s+%#x", s.Section, at-s.FunctionOffset))
		}
	}
	slices.Sort(got)
	expect.Equal(t, want, got, "%s: functions with calls (-) and those listed (+)", module)
}

package states

import (
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// Records in a section of another name are found after ld -r, whatever the linker keeps of
// the section, and with live calls before or behind them.
func TestRecordsOfAnotherSection(t *testing.T) {
	const source = "void __dtrace_probe_app___NAME(int);\nint NAME(int x) { __dtrace_probe_app___NAME(x); return x * 3; }\n"
	flags := []string{
		"--section=other_set", "--section=other_set --layout=relative", "--section=other_set --layout=freebsd",
		"--section=other_set --drop-relocations", "--section=other_set --probe-object-prefix=zz_", "--section=other_set --stapsdt",
	}
	for _, m := range []*toolchains.Machine{toolchains.AMD64, toolchains.ARM, toolchains.I386, toolchains.RISCV64} {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			f := newDirectory(t)
			tools.Need(t, m.Tool("gcc"))
			for _, name := range []string{"first", "second"} {
				f.write(name+".c", strings.ReplaceAll(source, "NAME", name))
				f.must(m.Tool("gcc"), "-O2", "-c", name+".c")
			}
			for _, flags := range flags {
				for _, l := range m.Newest() {
					tools.Need(t, l.Path)
					for _, order := range [][]string{{"converted.o", "second.o"}, {"second.o", "converted.o"}} {
						f.checkMixed(m, l, strings.Fields(flags), order)
					}
				}
			}
		})
	}
}

// checkMixed merges an object that was converted with some flags with one that was not.
func (f directory) checkMixed(m *toolchains.Machine, l toolchains.Linker, flags, order []string) {
	f.Helper()
	f.convert(append(flags, "-o", "converted.o", "first.o")...)
	if _, err := (tools.Command{Directory: f.path}).Try(l.Path, append([]string{"-m", m.Emulation, "-r", "-o", "merged.o"}, order...)...); err != nil {
		return // gold knows no R_RISCV
	}
	what := strings.Join(append(flags, l.Name, filepath.Base(order[0])), " ")
	again := f.run("merged.o")
	if again.Status != 1 || !strings.Contains(again.Stderr, "the object was converted before with another --section") {
		f.Errorf("%s: status %d, %q", what, again.Status, again.Stderr)
	}
	prefix := "sdt_"
	var asked []string
	for _, flag := range flags {
		if strings.HasPrefix(flag, "--probe-object-prefix=") {
			prefix, asked = strings.TrimPrefix(flag, "--probe-object-prefix="), []string{flag}
		}
	}
	check := f.run(append([]string{"check", "merged.o"}, asked...)...)
	for _, want := range []string{
		"app___first: no file of the link defines " + prefix + "app___first [undefined-probe]",
		"app___second: calls __dtrace_probe_app___second; convert the object before it is linked [live-call]",
	} {
		if check.Status != 1 || !strings.Contains(check.Stdout, want) {
			f.Errorf("%s: check has no %q: %s%s", what, want, check.Stdout, check.Stderr)
		}
	}
	if list := f.run(append([]string{"list", "merged.o"}, asked...)...); !strings.Contains(list.Stderr, "other_set") {
		f.Errorf("%s: list: status %d, %q", what, list.Status, list.Stderr)
	}
}

// Objects, and an image, with records in two sections are a finding.
func TestRecordsOfTwoSections(t *testing.T) {
	tools.Need(t, "gcc")
	f := newDirectory(t)
	for _, name := range []string{"first", "second"} {
		f.write(name+".c", "void __dtrace_probe_app___"+name+"(int);\nint "+name+"(int x) { __dtrace_probe_app___"+name+"(x); return x * 3; }\n")
		f.must("gcc", "-O2", "-c", name+".c")
	}
	f.write("main.c", "int main(void) { return 0; }\n")
	f.convert("--section=other_set", "first.o")
	f.convert("second.o")
	f.convert("stubs", "--section=other_set", "-o", "probes.o", "first.o", "second.o")
	f.must("gcc", "-o", "program", "main.c", "first.o", "second.o", "probes.o")
	f.must("ld", "-r", "-o", "merged.o", "first.o", "second.o")
	for _, files := range [][]string{{"first.o", "second.o", "probes.o"}, {"merged.o", "probes.o"}, {"program"}} {
		if got := f.run(append([]string{"check"}, files...)...); got.Status != 1 || !strings.Contains(got.Stdout, "[mixed-layout]") || strings.Contains(got.Stdout, "[undefined-probe]") {
			t.Errorf("%q: status %d, %s%s", files, got.Status, got.Stdout, got.Stderr)
		}
	}
	if got := f.run("list", "program"); !strings.Contains(got.Stderr, "warning: program: holds records of layout pairs in the section other_set too, which are not listed; see --section") {
		t.Errorf("list: %s%s", got.Stdout, got.Stderr)
	}
}

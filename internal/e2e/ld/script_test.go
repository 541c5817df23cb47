package ld

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

func exitCode(err error) int {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// File patterns of linker scripts mean copies as they mean the originals.
func TestFilePatterns(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		if why := l.Cannot[toolchains.Scripts]; why != "" {
			t.Skip(why)
		}
		compile(t, "sub/second.c", "sub/third.c", "plain.c")
		tools.Must(t, "ar", "rcs", "libthird.a", "sub/third.o")
		script := `SECTIONS {
	.one : { *second.o(.text) }
	.two : { *libthird.a:*(.text) }
	.text : { *(EXCLUDE_FILE(*second.o *third.o) .text) }
	.rest : { *(.text) }
}
`
		os.WriteFile("patterns.lds", []byte(script), 0o666)
		args := []string{"-r", "-T", "patterns.lds", "-o", "out.o", "sub/second.o", "--whole-archive", "libthird.a", "plain.o"}
		if l.Family == "gold" {
			args = append([]string{"-shared"}, args[1:]...) // -r and -T do not go together there
		}
		tools.Must(t, l.Path, args...)
		sections := func() string {
			var all []string
			for _, line := range strings.Split(tools.Output(t, "readelf", "-sW", "out.o"), "\n") {
				if f := strings.Fields(line); len(f) == 8 && (f[7] == "second" || f[7] == "third") {
					all = append(all, f[7]+" in "+f[6])
				}
			}
			return strings.Join(all, " ")
		}
		names := tools.Output(t, "readelf", "-SW", "out.o")
		if out, err := wrapped(l, append([]string{"--"}, args...)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		converted := tools.Output(t, "readelf", "-SW", "out.o")
		for _, name := range []string{" .one ", " .two "} {
			if strings.Contains(names, name) != strings.Contains(converted, name) {
				t.Errorf("the section%sis there once, and once not: %s\n%s", name, names, converted)
			}
		}
		if sections() == "" {
			t.Error("no function")
		}
	})
}

// A script that reads an input with probes, or means it by a name that the copy has
// not, stops the link, and --in-place goes on.
func TestScriptsThatNameInputs(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c", "plain.c")
		os.WriteFile("group.so", []byte("/* GNU ld script */ GROUP ( sub/second.o AS_NEEDED ( -lm ) )\n"), 0o666)
		os.WriteFile("innocent.so", []byte("INPUT(plain.o)\n"), 0o666)
		gcc(t, l, "-o", "program", "main.o", "sub/second.o", "./innocent.so")
		expect(t, "program", both)
		out, err := tools.Try("gcc", "-B"+wrappers, l.Use(), "-o", "none", "main.o", "./group.so")
		const want = "sdtconvert: ./group.so: names sub/second.o, which holds probes, and the linker would read that and no copy; link with --in-place\n"
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s, %v", out, err)
		}
		if _, err := os.Stat("none"); err == nil {
			t.Error("it was linked")
		}
		if l.Family != "mold" {
			os.WriteFile("sections.lds", []byte("SECTIONS { .one : { sub/second.o(.text) } .text : { *(.text) } }\n"), 0o666)
			os.WriteFile("pattern.lds", []byte("SECTIONS { .one : { sub/*.o(.text) } .text : { *(.text) } }\n"), 0o666)
			for script, want := range map[string]string{"sections.lds": "names sub/second.o", "pattern.lds": "the pattern sub/*.o"} {
				out, err := wrapped(l, "--", "-shared", "-T", script, "-o", "none", "sub/second.o", "main.o")
				if exitCode(err) != 1 || !strings.Contains(out, want) || strings.Count(out, "\n") != 1 {
					t.Errorf("%s: %s, %v", script, out, err)
				}
			}
		}
		t.Setenv("SDTCONVERT_FLAGS", "--in-place")
		gcc(t, l, "-o", "program", "main.o", "./group.so")
		expect(t, "program", both)
		if names := tools.Output(t, "nm", "sub/second.o"); strings.Contains(names, "__dtrace_probe") {
			t.Errorf("not converted: %s", names)
		}
	})
}

// The wrapper takes its flags from the environment, and steps aside.
func TestEnvironmentOfWrapper(t *testing.T) {
	enter(t, linker("bfd").Path)
	compile(t, "main.c", "sub/second.c")
	t.Setenv("SDTCONVERT_FLAGS", `--layout relative --probe-object-prefix 'sdt_'`)
	gcc(t, linker("bfd"), "-o", "program", "main.o", "sub/second.o")
	if sections := tools.Output(t, "readelf", "-SW", "program"); !strings.Contains(sections, "sdt_instances_rel") {
		t.Error(sections)
	}
	for flags, want := range map[string]string{
		"--nothing":     "sdtconvert: SDTCONVERT_FLAGS: unknown flag: --nothing",
		"sub/second.o":  `sdtconvert: SDTCONVERT_FLAGS: "sub/second.o" is no flag`,
		"--help":        "sdtconvert: SDTCONVERT_FLAGS: --help is for sdtconvert ld",
		"--jobs=0":      "sdtconvert: SDTCONVERT_FLAGS: --jobs 0 is less than 1",
		"--layout=what": "sdtconvert: SDTCONVERT_FLAGS: unknown layout",
	} {
		t.Setenv("SDTCONVERT_FLAGS", flags)
		out, err := combined(wrappers+"/ld", "-o", "none", "main.o")
		if exitCode(err) != 2 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: %s, %v", flags, out, err)
		}
	}
	t.Setenv("SDTCONVERT", "off")
	out, err := combined(wrappers+"/ld", "-e", "main", "-o", "none", "main.o")
	if exitCode(err) != 1 || !strings.Contains(out, "undefined reference to `__dtrace_probe_app___start'") {
		t.Errorf("%s, %v", out, err)
	}
}

// mold changes its folder before it looks for anything.
func TestFolderOfMold(t *testing.T) {
	tools.Need(t, "mold")
	enter(t, linker("mold").Path)
	compile(t, "sub/second.c")
	if out, err := wrapped(linker("mold"), "--", "-C", "sub", "-shared", "-o", "lib.so", "second.o", "-Map=lib.map"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if names := tools.Output(t, "nm", "sub/lib.so"); strings.Contains(names, "__dtrace") {
		t.Error(names)
	}
	sayNothing(t, "lib.map", read(t, "sub/lib.map"))
}

package ld

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
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

// Scripts may name inputs with probes, and choose them by patterns. The linker reads the script as it
// is, so its messages and reports name that.
func TestScriptsThatNameInputs(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c", "plain.c")
		os.WriteFile("group.so", []byte("/* GNU ld script */ GROUP ( sub/second.o AS_NEEDED ( -lm ) )\n"), 0o666)
		os.WriteFile("innocent.so", []byte("INPUT(plain.o)\n"), 0o666)
		os.WriteFile("outer.so", []byte("INPUT(\"./group.so\")\n"), 0o666)
		os.Mkdir("lib", 0o777)
		os.WriteFile("lib/libgroup.so", []byte("INPUT("+abs(t, "sub/second.o")+")\n"), 0o666)
		check := untouched(t, "main.o", "sub/second.o", "group.so", "lib/libgroup.so")
		for _, line := range []string{"sub/second.o ./innocent.so", "./group.so", "./outer.so", "-Llib -lgroup", "-L lib -l:libgroup.so"} {
			args := append(strings.Fields("-o program main.o"), strings.Fields(line)...)
			gcc(t, l, append(args, "-Wl,-Map=program.map,--dependency-file=program.d")...)
			checkOutput(t, "program", both)
			for _, report := range []string{"program.map", "program.d"} {
				sayNothing(t, report, read(t, report))
			}
			// A linker that names scripts there names those that it was given.
			rule := read(t, "program.d")
			if script := strings.Fields(line)[len(strings.Fields(line))-1]; strings.HasPrefix(script, "./") && l.Family != "mold" && !strings.Contains(rule, script[2:]) {
				t.Errorf("%s: %s", line, rule)
			}
		}
		check()
		t.Setenv("SDTCONVERT_FLAGS", "--in-place")
		gcc(t, l, "-o", "program", "main.o", "./group.so")
		checkOutput(t, "program", both)
		expect.Lacks(t, tools.Output(t, "nm", noPlugins, "sub/second.o"), "__dtrace_probe", "not converted")
	})
}

// A fault in a script is one of the user's script.
func TestMessagesOfScripts(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "sub/second.c")
		os.WriteFile("bad.so", []byte("INPUT(sub/second.o nothing.o)\n"), 0o666)
		want, wantErr := tools.Try(l.Path, "-shared", "-o", "none", "sub/second.o", "bad.so")
		out, err := wrapped(l, "--", "-shared", "-o", "none", "sub/second.o", "bad.so")
		sayNothing(t, "the message", out)
		if exitCode(err) != exitCode(wantErr) || !strings.Contains(out, "nothing.o") || strings.Contains(want, "bad.so") != strings.Contains(out, "bad.so") {
			t.Errorf("says %s, and without %s", out, want)
		}
	})
}

// A script that puts all sections of a file into one of another name takes its records along. check misses the
// probe, if it is required.
func TestScriptsThatTakeRecords(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		if why := l.Cannot[toolchains.Scripts]; why != "" {
			t.Skip(why)
		}
		compile(t, "sub/second.c", "plain.c")
		tools.Must(t, "cp", "sub/second.o", "third.o")
		for pattern, isLost := range map[string]bool{"*(sdt_*)": true, "sub/second.o(.text)": false} {
			os.WriteFile("the.lds", []byte("SECTIONS { .one : { "+pattern+" } .text : { *(.text) } }\n"), 0o666)
			out, err := wrapped(l, "--layout=pairs", "--", "-shared", "-z", "muldefs", "-o", "lib.so", "-T", "the.lds", "sub/second.o", "third.o", "plain.o")
			expect.OK(t, err, "%s: %s", pattern, out)
			out, err = combined(converter, "check", "--require=app:::second", "lib.so")
			if lost := err != nil && strings.Contains(out, "[missing-probe]"); lost != isLost {
				t.Errorf("%s: %v, says %q", pattern, err, out)
			}
		}
	})
}

// A script that has inputs read in another format stops the link.
func TestScriptsThatAreRefused(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		if why := l.Cannot[toolchains.Scripts]; why != "" {
			t.Skip(why)
		}
		compile(t, "sub/second.c", "plain.c")
		tools.Must(t, "cp", "sub/second.o", "second.o")
		os.WriteFile("target.ld", []byte("TARGET(binary) INPUT(plain.o)\n"), 0o666)
		out, err := wrapped(l, "--", "-shared", "-o", "none", "second.o", "target.ld")
		if exitCode(err) != 1 || !strings.HasPrefix(out, "sdtconvert: target.ld: TARGET in it has inputs read in another format") {
			t.Errorf("%s, %v", out, err)
		}
		os.WriteFile("target.ld", []byte("TARGET(elf64-x86-64) INPUT(plain.o)\n"), 0o666)
		if out, err := wrapped(l, "--", "-shared", "-o", "out.so", "second.o", "target.ld"); strings.Contains(out, "sdtconvert:") {
			t.Errorf("%s, %v", out, err)
		}
	})
}

// A script that comes from a pipe is the linker's to read.
func TestScriptFromPipe(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		if l.Family == "gold" || l.Family == "mold" {
			t.Skip("reads no script from a pipe")
		}
		compile(t, "sub/second.c", "plain.c")
		for _, linker := range []string{l.Path, "'" + converter + "' ld --linker " + l.Path + " --"} {
			tools.Must(t, "sh", "-c", "echo 'INPUT(sub/second.o)' | "+linker+" -m elf_x86_64 -shared -o out.so -T /dev/stdin plain.o")
			expect.Contains(t, tools.Output(t, "nm", noPlugins, "out.so"), " second\n", "%s", linker)
		}
		expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "not converted")
	})
}

func abs(t *testing.T, name string) string {
	t.Helper()
	return expect.Value(filepath.Abs(name))(t)
}

// The wrapper takes its flags from the environment, and steps aside.
func TestEnvironmentOfWrapper(t *testing.T) {
	tools.Need(t, "gcc", "readelf")
	enter(t, linker("bfd").Path)
	compile(t, "main.c", "sub/second.c")
	t.Setenv("SDTCONVERT_FLAGS", `--layout relative --probe-object-prefix 'sdt_'`)
	gcc(t, linker("bfd"), "-o", "program", "main.o", "sub/second.o")
	expect.Contains(t, tools.Output(t, "readelf", "-SW", "program"), "sdt_instances_rel")
	for flags, want := range map[string]string{
		"--nothing":     "sdtconvert: SDTCONVERT_FLAGS: unknown flag: --nothing",
		"sub/second.o":  `sdtconvert: SDTCONVERT_FLAGS: "sub/second.o" is not a flag`,
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

// mold changes its directory before it looks for anything.
func TestDirectoryOfMold(t *testing.T) {
	tools.Need(t, "mold")
	enter(t, linker("mold").Path)
	compile(t, "sub/second.c")
	if out, err := wrapped(linker("mold"), "--", "-C", "sub", "-m", "elf_x86_64", "-shared", "-o", "lib.so", "second.o", "-Map=lib.map"); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	expect.Lacks(t, tools.Output(t, "nm", noPlugins, "sub/lib.so"), "__dtrace")
	sayNothing(t, "lib.map", read(t, "sub/lib.map"))
}

// An input that is linked as it is has its own bytes in the output, however the flag is written.
func TestBytesOfBinaryInputs(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c")
		want := read(t, "sub/second.o")
		for _, flags := range []string{"-b binary", "--format=binary", "--format binary", "-format=binary", "--form=binary", "-forma binary"} {
			words := append([]string{"-m", "elf_x86_64", "-r", "-o", "out.o", "main.o"}, append(strings.Fields(flags), "sub/second.o")...)
			if _, err := tools.Try(l.Path, words...); err != nil {
				continue // some linkers know only some of these
			}
			out, err := wrapped(l, append([]string{"--"}, words...)...)
			if expect.OK(t, err); !strings.Contains(read(t, "out.o"), want) {
				t.Errorf("%s: the output has other bytes\n%s", flags, out)
			}
			expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.o"), "__dtrace_probe", "%s: not converted", flags)
		}
	})
}

package ld

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

const both = "main:app:start main:app:second"

// The program has its probes, the objects stay as they are, and what the linker
// writes names them.
func TestObjects(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c", "plain.c")
		check := untouched(t, "main.o", "sub/second.o", "plain.o")
		args := []string{"-o", "program", "main.o", "sub/second.o", "plain.o", "-Wl,-Map=program.map", "-Wl,--dependency-file=program.d"}
		if l.Can(toolchains.CrossReferences) {
			args = append(args, "-Wl,--cref")
		}
		gcc(t, l, args...)
		checkOutput(t, "program", both)
		check()
		for _, report := range []string{"program.map", "program.d"} {
			text := read(t, report)
			sayNothing(t, report, text)
			expect.Contains(t, text, "sub/second.o", "%s does not name sub/second.o", report)
		}
		// make takes the rule, and finds everything.
		os.WriteFile("Makefile", []byte("include program.d\n"), 0o666)
		expect.Contains(t, tools.Must(t, "make", "program"), "Nothing to be done", "make")
	})
}

// An input that is also the output is what it is to the linker.
func TestOutputIsInput(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		if l.Family == "mold" {
			t.Skip("mold writes into what it reads")
		}
		compile(t, "sub/second.c")
		object := disk.Read(t, "sub/second.o")
		_, want := tools.Try(l.Path, "-r", "-o", "sub/second.o", "sub/second.o")
		disk.Write(t, "sub/second.o", object)
		out, err := wrapped(l, "--", "-r", "-o", "sub/second.o", "sub/second.o")
		if exitCode(err) != exitCode(want) {
			t.Errorf("%s, %v, want %v", out, err, want)
		}
		if err == nil {
			expect.Lacks(t, tools.Output(t, "nm", noPlugins, "sub/second.o"), "__dtrace_probe", "not converted")
		}
	})
}

// A file that a flag names in the place of another, or whose objects a flag has linked, is converted
// when the linker opens it.
func TestFilesOfFlags(t *testing.T) {
	tools.Need(t, "gcc", "ar")
	for family, lines := range map[string][]string{
		"lld": {"--remap-inputs=plain.o=sub/second.o plain.o", "--remap-inputs-file=remaps plain.o"},
		"bfd": {"main.o --just-symbols=libsecond.a", "main.o -R second.ld", "main.o --libra=second -L.", "main.o --scri second.ld"},
	} {
		l := linker(family)
		tools.Need(t, l.Path)
		enter(t, l.Path)
		compile(t, "main.c", "sub/second.c", "plain.c")
		tools.Must(t, "ar", "rcs", "libsecond.a", "sub/second.o")
		disk.Write(t, "remaps", "# comment\nnone.o=none.o\nplain.o=sub/second.o\r\n")
		disk.Write(t, "second.ld", "INPUT(sub/second.o)\n")
		for _, line := range lines {
			words := append([]string{"-shared", "-u", "second", "-o", "out.so"}, strings.Fields(line)...)
			_, want := tools.Try(l.Path, words...)
			out, err := wrapped(l, append([]string{"--"}, words...)...)
			if exitCode(err) != exitCode(want) {
				t.Errorf("%s: %s, %v, want %v", line, out, err, want)
			} else if err == nil {
				expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "%s: not converted", line)
			}
		}
	}
}

// The same inputs make the same bytes, whatever the temporary directory is called.
func TestSameBytes(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		tools.Must(t, "gcc", "-g", "-O2", "-c", "main.c")
		tools.Must(t, "gcc", "-g", "-O2", "-c", "sub/second.c", "-o", "sub/second.o")
		tools.Must(t, "ar", "rcs", "libsecond.a", "sub/second.o")
		for _, mode := range [][]string{{}, {"-r", "-nostdlib"}, {"-shared"}, {"-static"}, {"-Wl,--build-id=sha1", "-Wl,--gc-sections"}} {
			var outputs []string
			for _, directory := range []string{t.TempDir(), filepath.Join(t.TempDir(), "another", "much", "longer", "name")} {
				expect.OK(t, os.MkdirAll(directory, 0o777))
				t.Setenv("TMPDIR", directory)
				args := append([]string{"-o", "out", "main.o", "libsecond.a"}, mode...)
				if len(mode) > 0 && mode[0] == "-shared" {
					args = []string{"-o", "out", "-shared", "-Wl,--whole-archive", "libsecond.a", "-Wl,--no-whole-archive"}
				}
				gcc(t, l, args...)
				out := read(t, "out")
				sayNothing(t, "the output", out)
				outputs = append(outputs, out)
			}
			if outputs[0] != outputs[1] {
				t.Errorf("%v: not the same bytes", mode)
			}
			if names := tools.Output(t, "nm", noPlugins, "out"); !strings.Contains(names, "sdt_app___second") || strings.Contains(names, "__dtrace_probe") {
				t.Errorf("%v: is not converted: %s", mode, names)
			}
		}
	})
}

// A definition of the build's own is what the records name, wherever it is.
func TestDefinitions(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c", "defined.c")
		tools.Must(t, "ar", "rcs", "libdefined.a", "defined.o")
		tools.Must(t, "gcc", "-fPIC", "-shared", "-o", "libshared.so", "defined.c")
		const own = "used main:own:defined main:own:second"
		for _, c := range []struct{ args, want string }{
			{"main.o sub/second.o", both},
			{"main.o sub/second.o defined.o", own},
			{"main.o sub/second.o -L. -ldefined", own},
			{"main.o sub/second.o ./libdefined.a", own},
			{"main.o sub/second.o -L. -lshared -Wl,-rpath,$ORIGIN", own},
			{"main.o sub/second.o ./libshared.so -Wl,-rpath,$ORIGIN", own},
			{"main.o sub/second.o -L. -Wl,--as-needed -lshared -Wl,-rpath,$ORIGIN", own},
		} {
			gcc(t, l, append([]string{"-o", "program"}, strings.Fields(c.args)...)...)
			expect.Equal(t, c.want, strings.Join(strings.Fields(run(t, "program")), " "), "%s: prints", c.args)
		}
		// Only the archive has probes.
		tools.Must(t, "ar", "rcs", "liball.a", "main.o", "sub/second.o")
		gcc(t, l, "-o", "program", "-Wl,--undefined=main", "-L.", "-lall")
		expect.Contains(t, run(t, "program"), "main:app:start", "prints")
		if out, err := wrapped(l, "--no-stubs", "--", "-o", "none", "-e", "main", "sub/second.o"); err == nil || !strings.Contains(out, "sdt_app___second") {
			t.Errorf("--no-stubs: %s, %v", out, err)
		}
	})
}

// reportsOf are flags that have a linker write names of inputs to a file.
var reportsOf = map[string][]string{
	"bfd":  {"-Map=a.map writes a.map", "-Map=. writes reported.map", "-Map=% writes reported.map", "-Map=my-%.txt writes my-reported.txt", "--Map=m% writes mreported.map"},
	"gold": {"-Map=a.map writes a.map", "--print-symbol-counts=counts writes counts"},
	"lld":  {"--time-trace=timed.json writes timed.json", "-Map=a.map writes a.map", "-Map=% writes %", "--print-archive-stats=stats writes stats"},
	"mold": {"-Map=a.map writes a.map"},
}

// What a linker says is about the files of the build, and its exit status is passed on.
func TestMessages(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c")
		out, err := wrapped(l, "--", "--trace", "-o", "none", "-e", "main", "main.o", "sub/second.o")
		if err == nil {
			t.Fatal("it links")
		}
		want, wantErr := tools.Try(l.Path, "-o", "none", "-e", "main", "main.o", "sub/second.o")
		if wantErr == nil || exitCode(err) != exitCode(wantErr) {
			t.Errorf("exit status %v, want %v", err, wantErr)
		}
		sayNothing(t, "the output", out)
		tools.Must(t, "ar", "rcs", "libmain.a", "main.o")
		for _, report := range reportsOf[l.Family] {
			flag, file, _ := strings.Cut(report, " writes ")
			args := []string{"--", "-shared", "-o", "reported", flag, "--undefined=main", "libmain.a"}
			if strings.Contains(flag, "time-trace") {
				args = append(args, "--time-trace-granularity=0")
			}
			wrapped(l, args...)
			text := read(t, file)
			sayNothing(t, file, text)
			expect.Contains(t, text, "libmain.a", "%s does not name libmain.a", file)
		}
		if undefined := regexp.MustCompile(`main\.o`); !undefined.MatchString(want) || !undefined.MatchString(out) {
			t.Errorf("says %s, and without %s", out, want)
		}
		if !strings.Contains(out, "sub/second.o") && l.Family != "mold" {
			t.Errorf("--trace shows %s", out)
		}
		// The same symbol twice: both files are named.
		out, err = wrapped(l, "--", "-o", "none", "-shared", "sub/second.o", "sub/second.o")
		if err == nil || strings.Count(out, "sub/second.o") < 2 {
			t.Errorf("twice: %s, %v", out, err)
		}
		sayNothing(t, "the output", out)
		// What is not an input is the linker's to judge.
		for _, args := range [][]string{{"nothing.o"}, {"."}, {"plain.c"}, {"--nothing"}, {"-T", "nothing.lds"}, {"-lnothing"}, {"@nothing"}} {
			args = append([]string{"-shared", "-o", "none", "sub/second.o"}, args...)
			want, wantErr := combined(l.Path, args...)
			out, err := wrapped(l, append([]string{"--"}, args...)...)
			if exitCode(err) != exitCode(wantErr) || strings.TrimSpace(out) != strings.TrimSpace(want) {
				t.Errorf("%v: %s, %v; without %s, %v", args, out, err, want, wantErr)
			}
		}
	})
}

// autoconf's scripts compile and link programs before they know anything.
func TestEnvironment(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "conftest.c", "int main(void) { return 0; }\n")
		expect.Equal(t, "", gcc(t, l, "-o", "conftest", "conftest.c"), "says")
		run(t, "conftest")
		expect.Contains(t, gcc(t, l, "-Wl,--version"), "GNU", "--version")
	})
}

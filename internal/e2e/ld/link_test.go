package ld

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
		expect.Lacks(t, read(t, "program.d"), "stubs", "make would look for what was added")
		// make takes the rule, and finds everything.
		os.WriteFile("Makefile", []byte("include program.d\n"), 0o666)
		expect.Contains(t, tools.Must(t, "make", "program"), "Nothing to be done", "make")
	})
}

// Whatever a name has in it that make or a shell would take apart, the dependency file
// is the linker's own. Some escape names there, and some do not.
func TestDependencyFile(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		tmp := filepath.Join(t.TempDir(), "a b#$c")
		os.MkdirAll(tmp, 0o777)
		t.Setenv("TMPDIR", tmp)
		compile(t, "sub/second.c", "sub/third.c")
		const directory = "sp ace/#d/$x"
		os.MkdirAll(directory, 0o777)
		os.Rename("sub/second.o", directory+"/q'u .o")
		os.Rename("sub/third.o", directory+"/q'u")
		args := []string{"-shared", "--dependency-file=out.d", "-o", "out", directory + "/q'u .o", directory + "/q'u"}
		if out, err := wrapped(l, append([]string{"--"}, args...)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := strings.TrimSpace(read(t, "out.d"))
		tools.Must(t, l.Path, args...)
		expect.Equal(t, strings.TrimSpace(read(t, "out.d")), got)
	})
}

// lld writes backslashes as slashes. A build takes such a rule, and finds nothing to do.
func TestBackslashes(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		tools.Need(t, "make", "ninja")
		compile(t, "main.c", "sub/second.c", "plain.c")
		expect.OK(t, os.Rename("sub/second.o", `sub/b\1.o`))
		link := "gcc -B" + wrappers + " " + l.Use() + ` -o program main.o 'sub/b\1.o' -Wl,--dependency-file=program.d`
		os.WriteFile("Makefile", []byte("program: main.o\n\t"+link+"\n-include program.d\n"), 0o666)
		os.WriteFile("build.ninja", []byte("rule link\n  command = "+link+"\n  depfile = program.d\nbuild program: link main.o\n"), 0o666)
		for _, builder := range []struct{ name, idle string }{{"make", "up to date"}, {"ninja", "no work to do"}} {
			os.Remove("program")
			tools.Must(t, builder.name)
			text := read(t, "program.d")
			sayNothing(t, "program.d", text)
			expect.Contains(t, text, `sub/b\1.o`)
			checkOutput(t, "program", both)
			expect.Contains(t, tools.Must(t, builder.name), builder.idle, "%s", builder.name)
			later := time.Now().Add(time.Minute)
			os.Chtimes(`sub/b\1.o`, later, later)
			if out := tools.Must(t, builder.name); strings.Contains(out, builder.idle) {
				t.Errorf("%s does not see that an object has changed: %s", builder.name, out)
			}
			now := time.Now().Add(-time.Second) // before the next build, also where clocks are coarse
			os.Chtimes(`sub/b\1.o`, now, now)
		}
	})
}

// The linker would find that the output is an input, if that was not a copy, and the
// input would be gone.
func TestOutputIsInput(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "sub/second.c")
		expect.OK(t, os.Link("sub/second.o", "linked.o"))
		check := untouched(t, "sub/second.o", "linked.o")
		for _, output := range []string{"sub/second.o", "linked.o"} {
			out, err := wrapped(l, "--", "-r", "-o", output, "sub/second.o")
			if want := "sdtconvert: sub/second.o: is the output too; name another\n"; exitCode(err) != 1 || out != want {
				t.Errorf("%s, %v, want %s", out, err, want)
			}
		}
		check()
	})
}

// Where a flag gives inputs other names, copies would not be meant, or the other not converted.
func TestRemappedInputs(t *testing.T) {
	l := linker("lld")
	tools.Need(t, "gcc", l.Path)
	enter(t, l.Path)
	compile(t, "sub/second.c", "plain.c")
	disk.Write(t, "remaps", "# comment\nnone.o=none.o\nplain.o=sub/second.o\r\n")
	for words, refused := range map[string]bool{
		"--remap-inputs=sub/second.o=plain.o sub/second.o": true,
		"--remap-inputs=plain.o=sub/second.o plain.o":      true,
		"--remap-inputs-file=remaps plain.o":               true,
		"--remap-inputs=none.o=plain.o plain.o":            false,
		"--remap-inputs-file=none -o out.so sub/second.o":  true,
	} {
		out, err := wrapped(l, append([]string{"--", "-shared", "-o", "out.so"}, strings.Fields(words)...)...)
		if got := strings.Contains(out, "the link holds probes, and copies of inputs have other names"); got != refused || got != (err != nil) {
			t.Errorf("%s: %s, %v", words, out, err)
		}
	}
}

// GNU ld and gold link objects of what is to have symbols alone.
func TestJustSymbols(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c")
		tools.Must(t, "ar", "rcs", "libsecond.a", "sub/second.o")
		disk.Write(t, "second.ld", "INPUT(sub/second.o)\n")
		for name, refused := range map[string]bool{"libsecond.a": true, "second.ld": true, "sub/second.o": false} {
			out, err := wrapped(l, "--", "-r", "-o", "out.o", "main.o", "--just-symbols="+name)
			if got := strings.Contains(out, name+": the linker links objects of what --just-symbols names"); got != refused || got && exitCode(err) != 1 {
				t.Errorf("%s: %s, %v", name, out, err)
			}
		}
	})
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

// An archive is converted wherever it is found, and read as it would be.
func TestArchives(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c", "sub/third.c")
		tools.Must(t, "ar", "rcs", "sub/libsecond.a", "sub/second.o", "sub/third.o")
		tools.Must(t, "ar", "rcsT", "sub/libthin.a", "sub/second.o", "sub/third.o")
		os.MkdirAll("root/usr/lib", 0o777)
		tools.Must(t, "cp", "sub/libsecond.a", "root/usr/lib/libroot.a")
		check := untouched(t, "main.o", "sub/second.o", "sub/libsecond.a", "sub/libthin.a")
		all := both + " main:app:third"
		for _, c := range []struct{ args, want string }{
			{"main.o sub/libsecond.a", both},
			{"main.o sub/libthin.a", both},
			{"main.o -Lsub -lsecond", both},
			{"main.o -L sub -l:libsecond.a", both},
			{"main.o -Lsub -lthin", both},
			{"main.o -Wl,-L,sub -Wl,-l,second", both},
			{"main.o -Lsub -Wl,--whole-archive -lsecond -Wl,--no-whole-archive", all},
			{"main.o -Lsub -Wl,--whole-archive,-lthin,--no-whole-archive", all},
			{"-Lsub -Wl,--start-group -lsecond main.o -Wl,--end-group", ""},
			{"main.o -Lsub -Wl,-Bstatic,-lsecond,-Bdynamic", both},
			{"main.o -Lsub -lsecond -lsecond sub/libsecond.a", both},
			{"main.o -static -Lsub -lsecond", both},
			{"main.o -Wl,--sysroot=root -Wl,-L=/usr/lib -Wl,-Bstatic,-lroot,-Bdynamic", both},
			{"main.o -Lsub -lsecond -Wl,-Map=out.map", both},
			{"main.o -Wl,--start-lib sub/second.o sub/third.o -Wl,--end-lib", both},
		} {
			if strings.Contains(c.args, "start-lib") && l.Family == "bfd" {
				continue // it has not got it
			}
			args := append([]string{"-o", "program"}, strings.Fields(c.args)...)
			gcc(t, l, args...)
			got := strings.Join(strings.Fields(run(t, "program")), " ")
			if c.want == "" { // the order is that of the group
				for _, probe := range strings.Fields(both) {
					expect.Contains(t, got, probe, "%s: prints", c.args)
				}
				continue
			}
			expect.Equal(t, c.want, got, "%s: prints", c.args)
		}
		text := read(t, "out.map")
		sayNothing(t, "out.map", text)
		expect.Contains(t, text, "sub/libsecond.a(second.o)", "out.map does not name the member")
		check()
	})
}

// A library for another machine is passed over by the linkers that do, and stops lld.
func TestOtherMachine(t *testing.T) {
	other := toolchains.ARM64.Tool("gcc")
	tools.Need(t, other, "ar")
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c")
		os.MkdirAll("other", 0o777)
		tools.Must(t, other, "-O2", "-c", "sub/second.c", "-o", "other/second.o")
		tools.Must(t, "ar", "rcs", "other/libsecond.a", "other/second.o")
		tools.Must(t, "ar", "rcs", "sub/libsecond.a", "sub/second.o")
		_, plain := tools.Try("gcc", "-B"+tools.Driver(t, l.Path), "-o", "program", "main.o", "-Lother", "-Lsub", "-lsecond")
		out, err := tools.Try("gcc", "-B"+wrappers, l.Use(), "-o", "program", "main.o", "-Lother", "-Lsub", "-lsecond")
		stops := plain != nil && strings.Contains(plain.Error(), "is incompatible with")
		switch {
		case stops != (err != nil) || stops != (l.Family == "lld"):
			t.Errorf("%s; without: %v", out, plain)
		case !stops:
			checkOutput(t, "program", both)
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

// A large link: the linker gets its arguments by a response file.
func TestManyArguments(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c", "plain.c")
		args := []string{"-o", "program", "main.o", "sub/second.o"}
		for i := range 3000 {
			args = append(args, "-L/no/such directory/number/"+strings.Repeat("x", i%7))
		}
		gcc(t, l, args...)
		checkOutput(t, "program", both)
	})
}

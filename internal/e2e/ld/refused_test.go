package ld

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// refusedSource takes the address of a stub, which no conversion takes.
const refusedSource = `void __dtrace_probe_app___second(int);
void (*stub)(int) = __dtrace_probe_app___second;
void second(int n) { stub(n); }
`

// A file that cannot be converted ends the link, wherever it is on the line and however it is named,
// and its reason is printed.
func TestRefusedObject(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "refused.c", []byte(refusedSource))
		compile(t, "refused.c", "plain.c")
		tools.Must(t, "ar", "rcs", "librefused.a", "refused.o")
		tools.Must(t, "ar", "rcsT", "libthin.a", "refused.o")
		disk.Write(t, "in.ld", []byte("INPUT(refused.o)\n"))
		disk.Write(t, "library.ld", []byte("INPUT(-lrefused)\n"))
		for _, inputs := range []string{
			"refused.o", "plain.o refused.o", "refused.o plain.o", "plain.o plain.o librefused.a", "plain.o -L. -lrefused", "plain.o in.ld",
			"libthin.a plain.o", "plain.o libthin.a", "plain.o -L. library.ld",
		} {
			for _, mode := range []string{"-shared", "-r"} {
				args := append([]string{"--", mode, "-o", "out", "--whole-archive"}, strings.Fields(inputs)...)
				out, err := wrapped(l, args...)
				if exitCode(err) != 1 || !strings.Contains(out, "take the stub's address") {
					t.Errorf("%s %s: %v, %s", mode, inputs, err, out)
				}
				disk.Absent(t, "out")
			}
		}
	})
}

// What is told of converted files is printed whatever is before them on the line.
func TestVerboseLink(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "plain.c", "sub/second.c")
		out, err := wrapped(l, "-v", "--", "-shared", "-o", "out", "plain.o", "sub/second.o")
		expect.OK(t, err)
		expect.Contains(t, out, "call app___second", "-v says nothing of the site")
	})
}

// A link below a /proc of another PID namespace says so, and what to do.
func TestOtherProc(t *testing.T) {
	l := linker("bfd")
	tools.Need(t, "gcc", l.Path, "unshare")
	enter(t, l.Path)
	compile(t, "plain.c", "sub/second.c")
	link := func(flags []string, object string) (string, error) {
		args := append(flags, converter, "ld", "--linker", l.Path, "--", "-shared", "-o", "out.so", object)
		return combined("unshare", args...)
	}
	pid := "-pf"
	if os.Geteuid() != 0 {
		pid = "-rpf" // which is not permitted below another root
	}
	if out, err := combined("unshare", pid, "true"); err != nil {
		tools.Unavailable(t, "no PID namespaces: "+out)
	}
	out, err := link([]string{pid}, "sub/second.o")
	if exitCode(err) != 1 || !strings.Contains(out, "/proc is that of another PID namespace") || !strings.Contains(out, "--in-place") {
		t.Errorf("%v, %s", err, out)
	}
	disk.Absent(t, "out.so")
	out, err = link([]string{pid}, "plain.o")
	expect.OK(t, err, "without probes: %s", out)
	if _, err := combined("unshare", pid, "--mount-proc", "true"); err != nil {
		return // a root that is no mount point has no /proc of its own
	}
	out, err = link([]string{pid, "--mount-proc"}, "sub/second.o")
	expect.OK(t, err, "%s", out)
	expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "not converted")
}

// Without any /proc, a link without probes goes on, one with probes names two cures, and both work.
func TestNoProc(t *testing.T) {
	l := linker("bfd")
	tools.Need(t, "gcc", l.Path, "unshare", "mount")
	without := func(words ...string) (string, error) {
		const hide = `mount --make-private /proc && mount -t tmpfs none /proc && exec "$@"` // the root may be no mount point
		return combined("unshare", append([]string{"-m", "--propagation", "unchanged", "sh", "-c", hide, "sh"}, words...)...)
	}
	if out, err := without("true"); err != nil {
		tools.Unavailable(t, "no mount namespaces, or /proc is no mount point: "+out)
	}
	enter(t, l.Path)
	os.Unsetenv("SDTCONVERT_LD") // enter sets it back; the linker is to be found along PATH
	disk.Write(t, "none.c", "int main(void) { return 0; }\n")
	disk.Write(t, "one.c", "#include <sdt.h>\nint main(int c, char **v) { DTRACE_PROBE1(app___one, int, c); return 0; }\n")
	tools.Must(t, "gcc", "-I"+tools.Root("include"), "-c", "none.c", "one.c")
	gcc := []string{"gcc", "-B" + wrappers, "-fuse-ld=bfd", "-o", "program"}
	out, err := without(append(gcc, "none.o")...)
	expect.OK(t, err, "without probes: %s", out)
	os.Remove("program")
	out, err = without(append(gcc, "one.o")...)
	if err == nil || !strings.Contains(out, "mount /proc") || !strings.Contains(out, "--in-place, or compile with sdtconvert cc") {
		t.Errorf("%v, %s", err, out)
	}
	disk.Absent(t, "program")
	out, err = without(converter, "cc", "--", "gcc", "-I"+tools.Root("include"), "-c", "one.c", "-o", "two.o")
	expect.OK(t, err, "%s", out)
	t.Setenv("SDTCONVERT_FLAGS", "--in-place")
	for _, object := range []string{"two.o", "one.o"} {
		out, err = without(append(gcc, object)...)
		expect.OK(t, err, "%s: %s", object, out)
		expect.Contains(t, tools.Must(t, converter, "list", "program"), "one")
	}
}

// An input that the conversion cannot see makes an output that is refused: here a linker that reads
// another file than the one of its line.
func TestUnseenInput(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "marked.c", []byte("#include <sdt.h>\nvoid marked(int n) { DTRACE_PROBE1(app___marked, int, n); }\n"))
		tools.Must(t, "gcc", "-O2", "-c", "-I"+tools.Root("include"), "-o", "marked.o", "marked.c")
		compile(t, "sub/second.c", "sub/third.c", "plain.c")
		tools.Must(t, "gcc", "-shared", "-o", "earlier.so", "sub/third.o")
		for object, probe := range map[string]string{"sub/third.o": "app___third", "marked.o": "app___marked"} {
			for _, mode := range []string{"-shared", "-r"} {
				tools.Must(t, l.Path, mode, "-o", "unconverted", object)
				for _, input := range []string{"sub/second.o", "plain.o"} {
					copies := program(t, "copies", "#!/bin/sh\nset -e\n'"+l.Path+"' \"$@\"\ncp unconverted \"$3\"\n")
					out, err := wrapped(toolchains.Linker{Path: copies}, "--", mode, "-o", "out", input)
					if exitCode(err) != 1 || !strings.Contains(out, "not converted") || !strings.Contains(out, probe) {
						t.Errorf("%s %s: %v, %s", mode, object, err, out)
					}
					disk.Absent(t, "out")
				}
			}
		}
	})
}

// clang looks for a linker in its own directory first, and finds one of another version by its name.
func TestLinkersOfClang(t *testing.T) {
	clang := toolchains.LLVM("clang")
	tools.Need(t, clang, toolchains.LLVM("ld.lld"))
	enter(t, "")
	directory := filepath.Join(t.TempDir(), "linkers")
	versioned := filepath.Base(toolchains.LLVM("ld.lld"))
	expect.OK(t, tools.LinkAs(directory, converter, "ld.lld", versioned))
	for _, use := range []string{"-fuse-ld=lld", "-fuse-ld=" + strings.TrimPrefix(versioned, "ld.")} {
		tools.Must(t, clang, "-O2", "-B"+directory, use, "-shared", "-o", "out.so", "sub/second.c")
		expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "%s: not converted", use)
	}
}

// Inputs that only the linker finds, where no file of the line has a probe.

// markedSource has a tracepoint, and plainMain calls it.
const (
	markedSource = "#include <sdt.h>\nint marked(int n) { DTRACE_PROBE1(app___marked, int, n); return 0; }\n"
	plainMain    = "int marked(int);\nint main(int c, char **v) { (void)v; return marked(c - 1); }\n"
)

// unseenBuild makes marked.o, libmarked.a and main.o in the test's directory, and returns how a compiler links with
// a linker through the wrapper.
func unseenBuild(t *testing.T, l toolchains.Linker) (link string) {
	t.Helper()
	disk.Write(t, "marked.c", []byte(markedSource))
	disk.Write(t, "main.c", []byte(plainMain))
	tools.Must(t, "gcc", "-O2", "-I"+tools.Root("include"), "-c", "marked.c", "main.c")
	tools.Must(t, "ar", "rcs", "libmarked.a", "marked.o")
	directory := t.TempDir()
	tools.Must(t, "ln", "-s", converter, directory+"/ld")
	t.Setenv("SDTCONVERT_LD", l.Path)
	return "-B" + directory
}

// listsMarked checks that a program has its probe.
func listsMarked(t *testing.T, program string) {
	t.Helper()
	tools.Must(t, "./"+program)
	expect.Contains(t, tools.Must(t, converter, "list", program), "marked")
}

// A source may name libraries, and lld links them.
func TestLibrariesOfSources(t *testing.T) {
	l := linker("lld")
	clang := toolchains.Clang.Name
	tools.Need(t, "gcc", "ar", clang, l.Path)
	enter(t, l.Path)
	link := unseenBuild(t, l)
	disk.Write(t, "names.c", []byte("#pragma comment(lib, \"marked\")\n"+plainMain))
	for _, flags := range []string{"", "-flto", "-flto=thin", "-flto -ffat-lto-objects"} {
		tools.Must(t, clang, append(strings.Fields(flags), "-c", "names.c")...)
		tools.Must(t, clang, append(strings.Fields(flags), link, "-L.", "-o", "program", "names.o")...)
		listsMarked(t, "program")
	}
}

// A plugin of the linker may add libraries.
func TestLibrariesOfPlugins(t *testing.T) {
	for _, family := range []string{"bfd", "gold"} {
		l := linker(family)
		tools.Need(t, "gcc", "ar", l.Path)
		t.Run(family, func(t *testing.T) {
			enter(t, l.Path)
			link := unseenBuild(t, l)
			plugin := strings.TrimSpace(tools.Must(t, "sh", "-c", "find /usr/lib -name libdep.so | head -n 1"))
			disk.Write(t, "between.c", []byte("int marked(int);\nint between(int n) { return marked(n); }\n"))
			disk.Write(t, "uses.c", []byte("int between(int);\nint main(int c, char **v) { (void)v; return between(c - 1); }\n"))
			tools.Must(t, "gcc", "-c", "between.c", "uses.c")
			tools.Must(t, "ar", "rcl", "-L. -lmarked", "libbetween.a", "between.o")
			tools.Must(t, "gcc", link, "-fno-lto", "-Wl,-plugin,"+plugin, "-o", "program", "uses.o", "-L.", "-lbetween")
			listsMarked(t, "program")
		})
	}
}

// What comes through a pipe is not converted, so the output is removed, or with -s the link is refused. A script or a
// response file may come through one.
func TestPipesWithoutOtherProbes(t *testing.T) {
	l := linker("lld")
	tools.Need(t, "gcc", "ar", "bash", l.Path)
	enter(t, l.Path)
	unseenBuild(t, l)
	disk.Write(t, "discard.ld", "SECTIONS { /DISCARD/ : { *(.sdt_unconverted) } } INSERT AFTER .data;\n")
	wrapper := "'" + converter + "' ld --linker " + l.Path + " -- -m elf_x86_64 -e main "
	for _, c := range []struct{ words, message string }{
		{"main.o <(cat marked.o)", "The output is removed"},
		{"main.o <(cat libmarked.a)", "The output is removed"},
		{"-r main.o <(cat marked.o)", "The output is removed"},
		{"-s main.o <(cat marked.o)", "is a pipe, and with -s"},
		{"--oformat=binary main.o <(cat marked.o)", "is a pipe, and with --oformat=binary"},
		{"-T discard.ld main.o <(cat marked.o)", "is a pipe, and with --script"},
	} {
		out, err := tools.Try("bash", "-c", wrapper+"-o out "+c.words)
		if exitCode(err) != 1 || !strings.Contains(out, c.message) {
			t.Errorf("%s: %v, %s", c.words, err, out)
		}
		disk.Absent(t, "out")
	}
	for _, words := range []string{"main.o <(echo 'INPUT(marked.o)')", "main.o @<(echo marked.o)", "@<(echo main.o --whole-archive libmarked.a)"} {
		tools.Must(t, "bash", "-c", wrapper+"-o out "+words)
		expect.Contains(t, tools.Must(t, converter, "list", "out"), "marked", "%s", words)
	}
}

// A program stays one if an object looks like a kernel's: its probes have notes.
func TestProgramWithKernelSections(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		tools.Need(t, "readelf")
		link := unseenBuild(t, l)
		disk.Write(t, "main.c", []byte(plainMain+"__attribute__((section(\".modinfo\"), used)) static char info[] = \"license=none\";\n"))
		tools.Must(t, "gcc", "-O2", "-pg", "-mfentry", "-mrecord-mcount", "-fno-pie", "-I"+tools.Root("include"), "-c", "main.c", "marked.c")
		for _, mode := range []string{"-no-pie", "-static", "-shared -fno-pie"} {
			if _, err := tools.Try("gcc", append(strings.Fields(mode), "-pg", link, "-o", "program", "main.o", "marked.o")...); err != nil {
				continue // code that is not for a library
			}
			expect.Contains(t, tools.Output(t, "readelf", "-n", "program"), "Name: marked", "%s", mode)
		}
	})
}

// lld generates no code of what its cache has.
func TestCacheOfThinCode(t *testing.T) {
	l := linker("lld")
	clang := toolchains.Clang.Name
	tools.Need(t, "gcc", "ar", clang, l.Path)
	enter(t, l.Path)
	link := unseenBuild(t, l)
	tools.Must(t, clang, "-flto=thin", "-O2", "-DSDT_CALLS", "-I"+tools.Root("include"), "-c", "marked.c", "main.c")
	for range 2 {
		tools.Must(t, clang, "-flto=thin", link, "-Wl,--thinlto-cache-dir=cache", "-o", "program", "main.o", "marked.o")
		listsMarked(t, "program")
	}
}

// A linker may be a script that adds inputs.
func TestLinkerThatAddsInputs(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		link := unseenBuild(t, l)
		script := t.TempDir() + "/ld"
		disk.Write(t, script, []byte("#!/bin/sh\nexec "+l.Path+" \"$@\" -L. -lmarked\n"))
		tools.Must(t, "chmod", "+x", script)
		t.Setenv("SDTCONVERT_LD", script)
		tools.Must(t, "gcc", link, "-fno-lto", "-o", "program", "main.o")
		listsMarked(t, "program")
	})
}

// An object whose stubs have lost their names is refused, by a link and by itself.
func TestRenamedStubs(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		unseenBuild(t, l)
		tools.Must(t, "objcopy", "--prefix-symbols=pre_", "marked.o", "prefixed.o")
		tools.Must(t, "objcopy", "--redefine-sym=__dtrace_probe_app___marked=other", "marked.o", "renamed.o")
		tools.Must(t, "ar", "rcs", "librenamed.a", "renamed.o")
		const message = "its symbols were renamed; convert the object before objcopy renames them"
		for _, input := range []string{"prefixed.o", "renamed.o", "librenamed.a"} {
			out, err := wrapped(l, "--", "-shared", "-o", "out", "main.o", "--whole-archive", input)
			if exitCode(err) != 1 || !strings.Contains(out, message) {
				t.Errorf("%s: %v, %s", input, err, out)
			}
			disk.Absent(t, "out")
			if out, err := combined(converter, input); exitCode(err) != 1 || !strings.Contains(out, message) {
				t.Errorf("%s alone: %v, %s", input, err, out)
			}
		}
	})
}

// gold leaves room behind records in an incremental link.
func TestIncrementalLink(t *testing.T) {
	l := linker("gold")
	tools.Need(t, "gcc", "ar", l.Path)
	enter(t, l.Path)
	unseenBuild(t, l)
	out, err := wrapped(l, "--", "--incremental-full", "-o", "out", "-e", "main", "main.o", "marked.o")
	if exitCode(err) != 1 || !strings.Contains(out, "link what has probes without it") {
		t.Errorf("%v, %s", err, out)
	}
}

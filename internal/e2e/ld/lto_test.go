package ld

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// ltoModes are how GCC writes objects for link-time optimisation.
var ltoModes = [][]string{{"-flto"}, {"-flto", "-ffat-lto-objects"}, {"-flto=2", "-g"}}

// What GCC's plugin generates is converted; objects that are not for it take part as
// always.
func TestGCCLTO(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "sub/third.c", "plain.c")
		for _, mode := range ltoModes {
			flags := append([]string{"-O2", "-c"}, mode...)
			tools.Must(t, "gcc", append(flags, "main.c", "-o", "main.o")...)
			tools.Must(t, "gcc", append(flags, "sub/second.c", "-o", "sub/second.o")...)
			check := untouched(t, "main.o", "sub/second.o")
			args := append([]string{"-O2", "-o", "program", "main.o", "plain.o", "sub/second.o", "sub/third.o", "-Wl,-Map=program.map"}, mode...)
			isMachineCode := l.Family == "lld" && slices.Contains(mode, "-ffat-lto-objects")
			if l.Family == "lld" && !isMachineCode {
				continue // it does not take such objects
			}
			gcc(t, l, args...)
			expectAll(t, "program", both+" main:app:third")
			sayNothing(t, "program.map", read(t, "program.map"))
			check()
			gcc(t, l, append([]string{"-shared", "-fPIC", "-o", "lib.so", "sub/second.o"}, mode...)...)
			if names := tools.Output(t, "nm", noPlugins, "lib.so"); !strings.Contains(names, "sdt_app___second") || strings.Contains(names, "__dtrace") {
				t.Errorf("%v: %s", mode, names)
			}
		}
		// Without probes in it, it does not matter.
		tools.Must(t, "gcc", "-O2", "-flto", "-c", "plain.c")
		compile(t, "main.c", "sub/second.c")
		l2 := []string{"-O2", "-o", "program", "main.o", "sub/second.o"}
		if l.Can(toolchains.GCCPlugin) {
			l2 = append(l2, "plain.o", "-flto")
		}
		gcc(t, l, l2...)
		checkOutput(t, "program", both)
		// A definition of the build's own, in code that is late.
		tools.Must(t, "gcc", "-O2", "-flto", "-c", "defined.c")
		tools.Must(t, "gcc", "-O2", "-flto", "-c", "main.c")
		if l.Family != "lld" {
			gcc(t, l, "-O2", "-flto", "-o", "program", "main.o", "sub/second.o", "defined.o")
			expect.Contains(t, run(t, "program"), "main:own:defined", "the definition")
		}
		if l.Family == "lld" {
			return
		}
		// In an archive, behind --start-lib, in a script.
		for _, flags := range [][]string{{"-O2", "-flto"}, {"-O2", "-flto", "-ffat-lto-objects"}} {
			tools.Must(t, "gcc", append(flags, "-c", "sub/second.c", "-o", "sub/second.o")...)
			os.Remove("libsecond.a")
			tools.Must(t, "gcc-ar", "rcs", "libsecond.a", "sub/second.o")
			os.WriteFile("second.ld", []byte("INPUT(sub/second.o)\n"), 0o666)
			compile(t, "main.c")
			for _, inputs := range []string{"libsecond.a", "-Wl,--start-lib sub/second.o -Wl,--end-lib", "second.ld"} {
				if strings.Contains(inputs, "start-lib") && l.Family == "bfd" {
					continue // it has not got it
				}
				gcc(t, l, append([]string{"-O2", "-flto", "-o", "program", "main.o"}, strings.Fields(inputs)...)...)
				expectAll(t, "program", both)
			}
		}
	})
}

// Fat objects hold machine code too, which links without the plugin take.
func TestFatObjects(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		for _, compiler := range []string{"gcc", toolchains.LLVM("clang")} {
			tools.Need(t, compiler, "ar")
			for _, source := range []string{"main", "sub/second", "sub/third"} {
				tools.Must(t, compiler, "-O2", "-flto", "-ffat-lto-objects", "-c", source+".c", "-o", source+".o")
			}
			tools.Must(t, "ar", "rcs", "libsecond.a", "sub/second.o")
			compile(t, "plain.c")
			check := untouched(t, "main.o", "sub/third.o", "libsecond.a")
			inputs := []string{"-o", "program", "main.o", "plain.o", "sub/third.o", "libsecond.a"}
			gcc(t, l, append(inputs, "-fno-lto")...)
			checkOutput(t, "program", "main:app:start main:app:third main:app:second")
			check()
			if compiler != "gcc" || l.Family == "lld" {
				continue
			}
			// The plugin takes the members of archives, too; also if their machine code was converted before.
			for range 2 {
				gcc(t, l, append([]string{"-flto"}, inputs...)...)
				expectAll(t, "program", both)
				tools.Must(t, converter, "libsecond.a")
			}
		}
	})
}

// The conversion of a fat object leaves its intermediate code alone.
func TestFatObjectIsConverted(t *testing.T) {
	enter(t, linker("bfd").Path)
	tools.Need(t, "gcc", "readelf", "objcopy", toolchains.LLVM("clang"))
	for _, compiler := range []string{"gcc", toolchains.LLVM("clang")} {
		tools.Must(t, compiler, "-O2", "-flto", "-ffat-lto-objects", "-c", "main.c")
		before := intermediate(t, "main.o")
		if len(before) == 0 {
			t.Fatalf("%s makes no fat objects", compiler)
		}
		tools.Must(t, converter, "main.o")
		expect.Equal(t, before, intermediate(t, "main.o"), "%s: intermediate code", compiler)
		if names := tools.Output(t, "nm", noPlugins, "main.o"); strings.Contains(names, "__dtrace") || !strings.Contains(names, "sdt_app___start") {
			t.Errorf("%s: %s", compiler, names)
		}
	}
	// A relocatable link may put intermediate code without machine code beside machine code.
	tools.Must(t, "gcc", "-O2", "-flto", "-c", "main.c", "-o", "slim.o")
	compile(t, "sub/second.c")
	tools.Must(t, "ld", "-r", "-o", "mixed.o", "slim.o", "sub/second.o")
	out, err := combined(converter, "mixed.o")
	if exitCode(err) != 1 || !strings.Contains(out, "is GCC link-time optimisation code that holds probes") {
		t.Errorf("%s, %v", out, err)
	}
}

// intermediate returns the sections of an object that hold intermediate code, by name.
func intermediate(t *testing.T, object string) map[string]string {
	t.Helper()
	sections := map[string]string{}
	for _, word := range strings.Fields(tools.Output(t, "readelf", "-SW", object)) {
		if strings.HasPrefix(word, ".gnu.lto_") || word == ".llvm.lto" {
			tools.Must(t, "objcopy", "--dump-section", word+"=section", object, "copy.o")
			sections[word] = read(t, "section")
		}
	}
	return sections
}

// expectAll checks for probes, whose functions may have been inlined.
func expectAll(t *testing.T, program, want string) {
	t.Helper()
	got := run(t, program)
	for _, probe := range strings.Fields(want) {
		if !strings.Contains(got, probe+"\n") {
			t.Errorf("%s prints %q, want %s", program, got, probe)
		}
	}
}

// lld generates the code of bitcode as it would in the link.
func TestClangLTO(t *testing.T) {
	for _, c := range []struct{ clang, lld string }{{toolchains.OldClang.Name, "old-lld"}, {toolchains.Clang.Name, "lld"}} {
		for _, mode := range []string{"-flto", "-flto=thin"} {
			t.Run(c.clang+mode, func(t *testing.T) {
				l, clang := toolchains.AMD64.Linker(c.lld), c.clang
				tools.Need(t, clang, l.Path)
				enter(t, l.Path)
				for _, source := range []string{"main", "sub/second", "plain"} {
					tools.Must(t, clang, "-O2", mode, "-c", source+".c", "-o", source+".o")
				}
				compile(t, "sub/third.c", "defined.c")
				check := untouched(t, "main.o", "sub/second.o")
				link := []string{"--ld-path=" + wrappers + "/ld.lld", "-O2", mode, "-o", "program", "main.o", "plain.o", "sub/second.o", "sub/third.o", "-Wl,-Map=program.map"}
				tools.Must(t, clang, link...)
				expectAll(t, "program", both+" main:app:third")
				sayNothing(t, "program.map", read(t, "program.map"))
				check()
				tools.Must(t, clang, append(link, "defined.o")...)
				expectAll(t, "program", "used main:own:defined main:own:second main:own:third")
				// The definition is in bitcode too.
				tools.Must(t, clang, "-O2", mode, "-c", "defined.c")
				tools.Must(t, clang, append(link, "defined.o")...)
				expectAll(t, "program", "used main:own:defined main:own:second main:own:third")
				first := read(t, "program")
				tools.Must(t, clang, append(link, "defined.o")...)
				if read(t, "program") != first {
					t.Error("not the same bytes again")
				}
				// An undefined symbol is the linker's to report.
				os.WriteFile("undefined.c", []byte("void nowhere(void); void f(void) { nowhere(); }\n"), 0o666)
				tools.Must(t, clang, "-O2", mode, "-c", "undefined.c")
				out, err := tools.Try(clang, append(link, "undefined.o", "-Wl,--undefined=f")...)
				if err == nil || !strings.Contains(out, "nowhere") {
					t.Errorf("%s, %v", out, err)
				}
				sayNothing(t, "the output", out)
			})
		}
	}
	t.Run("no plugin", func(t *testing.T) {
		gold := linker("gold")
		tools.Need(t, toolchains.LLVM("clang"), gold.Path)
		enter(t, gold.Path)
		tools.Must(t, toolchains.LLVM("clang"), "-O2", "-flto", "-c", "main.c")
		_, want := tools.Try(gold.Path, "-shared", "-o", "none", "main.o")
		if out, err := wrapped(gold, "--", "-shared", "-o", "none", "main.o"); exitCode(err) != exitCode(want) {
			t.Errorf("%s, %v, want %v", out, err, want)
		}
	})
}

// LLVM's plugin writes the code that it generates to a file, which is converted where the linker
// opens it.
func TestPluginOfLLVM(t *testing.T) {
	clang := toolchains.Clang.Name
	version := clang[strings.LastIndexByte(clang, '-')+1:]
	plugin := "/usr/lib/llvm-" + version + "/lib/LLVMgold.so"
	if _, err := os.Stat(plugin); err != nil {
		t.Skip(err)
	}
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		if l.Family == "lld" {
			t.Skip("lld takes no plugin")
		}
		tools.Need(t, clang, "llvm-ar-"+version)
		for _, mode := range []string{"-flto", "-flto=thin"} {
			for _, source := range []string{"main", "sub/second", "defined"} {
				tools.Must(t, clang, "-O2", mode, "-c", source+".c", "-o", source+".o")
			}
			os.Remove("libsecond.a")
			tools.Must(t, "llvm-ar-"+version, "rcs", "libsecond.a", "sub/second.o")
			os.WriteFile("second.ld", []byte("INPUT(sub/second.o)\n"), 0o666)
			for inputs, want := range map[string]string{
				"main.o sub/second.o": both, "main.o libsecond.a": both, "main.o second.ld": both,
				"main.o sub/second.o defined.o": "used main:own:defined main:own:second",
			} {
				args := append([]string{"-B" + wrappers, l.Use(), "-O2", mode, "-o", "program"}, strings.Fields(inputs)...)
				tools.Must(t, clang, args...)
				expectAll(t, "program", want)
			}
		}
	})
}

const withHeader = `
#include <sdt.h>
SDT_PROVIDER_DEFINE(shop);
SDT_PROBE_DEFINE1(shop, , , placed, "int");
void other(int);
void show_all(void);
int main(int argc, char **argv)
{
	(void)argv;
	SDT_PROBE1(shop, , , placed, argc);
	other(argc);
	show_all();
	return 0;
}
`

const otherWithHeader = `
#include <sdt.h>
SDT_PROVIDER_DECLARE(shop);
SDT_PROBE_DEFINE1(shop, , , sent, "int");
void other(int n) { if (SDT_PROBE_ENABLED(shop, , , sent)) SDT_PROBE1(shop, , , sent, n); }
`

// The stubs of sdt.h are hidden, which lld does not let pass as undefined if they are called.
func TestHeaderLTO(t *testing.T) {
	for _, lto := range toolchains.LTOs() {
		l, compiler := lto.Linker, lto.Compiler.Name
		t.Run(compiler+l.Path+lto.Flag, func(t *testing.T) {
			tools.Need(t, compiler, l.Path)
			enter(t, l.Path)
			disk.Write(t, "shop.c", withHeader)
			disk.Write(t, "other.c", otherWithHeader)
			disk.Write(t, "show.c", "#include \"show.h\"\nvoid show_all(void) { show(\"main\"); }\n")
			args := []string{"-B" + wrappers, l.Use(), lto.Flag, "-O2", "-I" + tools.Root("include"), "shop.c", "other.c", "show.c"}
			for _, more := range []string{"", "-Wl,--fatal-warnings", "-Wl,--gc-sections", "-DSDT_CALLS -DSDT_NO_SEMAPHORES"} {
				tools.Must(t, compiler, append(args, strings.Fields(more+" -o program")...)...)
				expectAll(t, "program", "main:shop:placed main:shop:sent")
			}
			// What is missing is missing in the end.
			disk.Write(t, "undefined.c", "__attribute__((visibility(\"hidden\"))) void nowhere(void); void f(void) { nowhere(); }\n")
			tools.Refuses(t, "nowhere", compiler, append(args, "undefined.c", "-Wl,--undefined=f", "-o", "none")...)
			disk.Absent(t, "none")
		})
	}
}

// What lld extracts for bitcode stays in the program when optimisation has removed the reference: members of archives and
// files between --start-lib and --end-lib, with their probes, constructors, and strong definitions of weak functions. Members
// of bitcode without probes are generated once. The oracle is a link without conversion.
func TestExtractedForBitcode(t *testing.T) {
	const program = "#include <stdio.h>\n#include <sdt.h>\nint verbose(void), extra(int), policy(void), times(int);\n" +
		"int main(int c, char **v) { (void)v; DTRACE_PROBE(app___main); if (verbose()) extra(c); printf(\"%d %d\\n\", policy(), times(c)); return 0; }\n"
	sources := map[string]string{
		"program": program,
		"verbose": "int verbose(void) { return 0; }\n",
		"times":   "int times(int n) { return 3 * n; }\n",
		"policy":  "__attribute__((weak)) int mode(void) { return 1; }\nint policy(void) { return mode(); }\n",
		"extra": "#include <stdio.h>\n#include <sdt.h>\nint mode(void) { return 2; }\nint extra(int n) { DTRACE_PROBE(app___extra); return n + 1; }\n" +
			"__attribute__((constructor)) static void start(void) { DTRACE_PROBE(app___start); puts(\"start\"); }\n",
	}
	for _, c := range []struct{ clang, lld string }{{toolchains.OldClang.Name, "old-lld"}, {toolchains.Clang.Name, "lld"}} {
		for _, mode := range []string{"-flto", "-flto=thin"} {
			t.Run(c.clang+mode, func(t *testing.T) {
				l, clang := toolchains.AMD64.Linker(c.lld), c.clang
				tools.Need(t, clang, "ar", l.Path)
				enter(t, l.Path)
				for name, text := range sources {
					disk.Write(t, name+".c", []byte(text))
					tools.Must(t, clang, "-O2", "-I"+tools.Root("include"), mode, "-c", name+".c")
				}
				tools.Must(t, clang, "-O2", "-I"+tools.Root("include"), "-c", "policy.c")
				tools.Must(t, clang, "-O2", "-I"+tools.Root("include"), "-c", "extra.c", "-o", "native.o")
				tools.Must(t, "ar", "rcS", "libnative.a", "native.o")
				tools.Must(t, "ar", "rcS", "libtimes.a", "times.o")
				for _, inputs := range []string{
					"program.o verbose.o policy.o times.o libnative.a",
					"libtimes.a libnative.a program.o verbose.o policy.o",
					"program.o verbose.o policy.o libtimes.a -Wl,--start-lib native.o -Wl,--end-lib",
					"program.o verbose.o policy.o times.o -Wl,--start-lib extra.o -Wl,--end-lib",
					"-Wl,--start-lib extra.o times.o -Wl,--end-lib program.o verbose.o policy.o",
				} {
					link := append([]string{"--ld-path=" + wrappers + "/ld.lld", "-O2", mode, "-o", "linked"}, strings.Fields(inputs)...)
					tools.Must(t, "env", append([]string{"SDTCONVERT=off", clang}, link...)...)
					want := tools.Must(t, "./linked")
					tools.Must(t, clang, link...)
					expect.Equal(t, want, tools.Must(t, "./linked"), "%s", inputs)
					listed := tools.Must(t, converter, "list", "--names", "linked")
					for _, probe := range []string{":main\n", ":start\n"} {
						expect.Contains(t, listed, probe)
					}
				}
			})
		}
	}
}

// TestProbesInArchivesOfBitcode links a library of bitcode with probes, in each form of a tracepoint, by lld: the program computes
// what its twin does, and has the probes of the members that are extracted.
func TestProbesInArchivesOfBitcode(t *testing.T) {
	sources := map[string]string{
		"main":   "#include <stdio.h>\nint one(int), two(int);\nint main(int c, char **v) { (void)v; printf(\"%d\\n\", one(c) + two(c)); return 0; }\n",
		"one":    "#include <sdt.h>\nint one(int n) { DTRACE_PROBE1(lib___one, int, n); return n + 1; }\n",
		"two":    "#include <sdt.h>\nint two(int n) { if (DTRACE_PROBE_ENABLED(lib___two)) DTRACE_PROBE1(lib___two, int, n); return n * 2; }\n",
		"unused": "#include <sdt.h>\nint unused(int n) { DTRACE_PROBE1(lib___unused, int, n); return n; }\n",
	}
	for _, c := range []struct{ clang, lld string }{{toolchains.OldClang.Name, "old-lld"}, {toolchains.Clang.Name, "lld"}} {
		l := toolchains.AMD64.Linker(c.lld)
		tools.Need(t, c.clang, "ar", l.Path)
		enter(t, l.Path)
		for _, form := range []string{"-flto", "-flto=thin", "-flto=thin -DSDT_CALLS -DSDT_NO_SEMAPHORES"} {
			flags := append([]string{"-O2", "-I" + tools.Root("include")}, strings.Fields(form)...)
			for name, text := range sources {
				disk.Write(t, name+".c", []byte(text))
				tools.Must(t, c.clang, append(flags, "-c", name+".c")...)
			}
			os.Remove("lib.a")
			tools.Must(t, "ar", "rcS", "lib.a", "one.o", "two.o", "unused.o")
			linker := "--ld-path=" + wrappers + "/ld.lld"
			tools.Must(t, c.clang, append(flags, linker, "-o", "linked", "main.o", "lib.a")...)
			expect.Equal(t, "4\n", tools.Must(t, "./linked"), "%s %s", c.clang, form)
			tools.Must(t, converter, "check", "--require", "lib:::one", "--require", "lib:::two", "--require-notes", "linked")
			expect.Equal(t, false, strings.Contains(tools.Must(t, converter, "list", "linked"), "unused"), "%s %s: an unused member", c.clang, form)
			os.Remove("linked")
			tools.Refuses(t, "linked twice with --whole-archive", c.clang, append(flags, linker, "-o", "linked", "main.o", "-Wl,--whole-archive", "lib.a", "-Wl,--no-whole-archive")...)
			tools.Must(t, c.clang, "-O2", "-c", "main.c")
			tools.Refuses(t, "or an object with -flto", c.clang, append(flags, linker, "-o", "linked", "main.o", "lib.a")...)
			disk.Absent(t, "linked")
		}
	}
}

// A file of bitcode that the line names stays in the program if it is a member of a thin archive, too: lld opens it for both. If the
// linker calls both by one name, the link is refused.
func TestBitcodeInThinArchive(t *testing.T) {
	l, clang := toolchains.AMD64.Linker("lld"), toolchains.Clang.Name
	tools.Need(t, clang, "ar", l.Path)
	enter(t, l.Path)
	disk.Write(t, "main.c", []byte("int main(void) { return 0; }\n"))
	disk.Write(t, "start.c", []byte("#include <stdio.h>\n#include <sdt.h>\n"+
		"__attribute__((constructor)) static void start(void) { DTRACE_PROBE(app___start); puts(\"start\"); }\n"))
	tools.Must(t, clang, "-O2", "-c", "main.c")
	tools.Must(t, clang, "-O2", "-flto", "-I"+tools.Root("include"), "-c", "start.c")
	expect.OK(t, os.Mkdir("thin", 0o755))
	expect.OK(t, os.Chdir("thin"))
	tools.Must(t, "ar", "qcTS", "libthin.a", "../start.o")
	expect.OK(t, os.Chdir(".."))
	tools.Must(t, "ar", "qcTS", "libthin.a", "start.o")
	link := []string{"--ld-path=" + wrappers + "/ld.lld", "-o", "linked", "main.o"}
	for _, inputs := range []string{"thin/libthin.a start.o", "start.o thin/libthin.a", "thin/libthin.a ./start.o ./thin/libthin.a"} {
		tools.Must(t, clang, append(link, strings.Fields(inputs)...)...)
		expect.Equal(t, "start\n", tools.Must(t, "./linked"), "%s", inputs)
		tools.Must(t, converter, "check", "--require", "app:::start", "linked")
	}
	expect.OK(t, os.Remove("linked"))
	tools.Refuses(t, "start.o: is linked by this name and as a member of a thin archive", clang, append(link, "libthin.a", "start.o")...)
	disk.Absent(t, "linked")
}

// A link in which generated code would be in the output twice, or whose archives would be extracted otherwise than for the
// bitcode, ends with an error and without an output. Bitcode that nothing refers to is left out.
func TestBitcodeThatWouldBeLinkedOtherwise(t *testing.T) {
	sources := map[string]string{
		"main":     "#include <sdt.h>\nint main(void) { DTRACE_PROBE(app___main); return 0; }\n",
		"register": "#include <stdio.h>\n__attribute__((constructor)) static void start(void) { puts(\"registered\"); }\n",
		"native":   "int weak(int);\nint main(void) { return weak(0); }\n",
		"weak":     "#include <sdt.h>\nint strong(int), hook(int) __attribute__((weak));\nint weak(int n) { DTRACE_PROBE1(app___weak, int, n); strong(n); return hook ? hook(n) : 1; }\n",
		"strong":   "int hook(int);\nint strong(int n) { return hook(n) + 1; }\n",
		"hook":     "int hook(int n) { return n; }\n",
		"unused":   "#include <sdt.h>\nint unused(void) { DTRACE_PROBE(app___unused); return 0; }\n",
		"plain":    "int main(void) { return 0; }\n",
	}
	for _, c := range []struct{ clang, lld string }{{toolchains.OldClang.Name, "old-lld"}, {toolchains.Clang.Name, "lld"}} {
		l, clang := toolchains.AMD64.Linker(c.lld), c.clang
		tools.Need(t, clang, "ar", l.Path)
		enter(t, l.Path)
		for name, text := range sources {
			disk.Write(t, name+".c", []byte(text))
			args := []string{"-O2", "-I" + tools.Root("include"), "-c", name + ".c"}
			if !slices.Contains([]string{"native", "hook", "plain"}, name) {
				args = append(args, "-flto")
			}
			tools.Must(t, clang, args...)
		}
		tools.Must(t, "ar", "rcS", "libregister.a", "register.o")
		tools.Must(t, "ar", "rcs", "libhook.a", "hook.o")
		for inputs, want := range map[string]string{
			"main.o -Wl,--whole-archive libregister.a -Wl,--no-whole-archive": "in the output twice",
			"-no-pie native.o weak.o strong.o libhook.a":                      "libhook.a(hook.o) would be linked or left out",
			"native.o strong.o weak.o libhook.a":                              "",
			"plain.o -Wl,--start-lib unused.o -Wl,--end-lib":                  "",
		} {
			out, err := tools.Try(clang, append([]string{"--ld-path=" + wrappers + "/ld.lld", "-O2", "-o", "linked"}, strings.Fields(inputs)...)...)
			_, missing := os.Stat("linked")
			if (err != nil) != (want != "") || (missing != nil) != (want != "") || !strings.Contains(out, want) {
				t.Errorf("%s, %s: %v, %v, %s", clang, inputs, err, missing, out)
			}
			os.Remove("linked")
		}
	}
}

package ld

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// A FreeBSD kernel asks for the bounds of its records by name, and nothing in it refers
// to them: they are in a final link in the freebsd layout, whether the objects were
// converted before or in the link, and in no other link.
func TestBounds(t *testing.T) {
	const source = "void __dtrace_probe_tcp___send(int);\nint test(void);\n" +
		"void _start(void)\n{\n\t__dtrace_probe_tcp___send(1);\n\ttest();\n}\nint test(void) { return 0; }\n"
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "kernel.c", source)
		tools.Must(t, "gcc", "-O2", "-fno-pic", "-c", "kernel.c")
		tools.Must(t, "gcc", "-O2", "-fno-pic", "-c", "-o", "before.o", "kernel.c")
		tools.Must(t, converter, "--layout", "freebsd", "before.o")
		tools.Must(t, converter, "stubs", "-o", "stubs.o", "before.o")
		for _, link := range []struct {
			flags, object, more string
			has                 bool
		}{
			{"--layout=freebsd", "kernel.o", "", true},
			{"--layout=freebsd", "before.o", "", true},
			{"--layout=freebsd", "before.o", "stubs.o", true}, // which needs nothing else
			{"--layout=freebsd", "kernel.o", "-r", false},
			{"--layout=pairs", "kernel.o", "", false},
		} {
			args := append([]string{link.flags, "--", "-o", "kernel", link.object}, strings.Fields(link.more)...)
			if out, err := wrapped(l, args...); err != nil {
				t.Fatal(args, err, out)
			}
			symbols := tools.Must(t, "readelf", "-sW", "kernel")
			for _, bound := range []string{"start", "stop"} {
				name := " __" + bound + "_set_sdt_instances_set\n"
				expect.Equal(t, link.has, strings.Contains(symbols, name), "%v: has %s:\n%s", args, name, symbols)
			}
			expect.Lacks(t, symbols, "UND __s", "%v: a bound is undefined", args)
		}
	})
}

// Objects that were compiled with the header of FreeBSD's kernel have nothing to convert,
// and a link of a kernel or a module says so, whether it converts others or not.
func TestKernelHeader(t *testing.T) {
	const hook = "extern void (*sdt_probe_func)(unsigned, long);\n"
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		for name, source := range map[string]string{
			"arc":    hook + "void arc(long n) { sdt_probe_func(7, n); }\n",
			"dmu":    hook + "void dmu(long n) { sdt_probe_func(8, n); }\n",
			"tcp":    "void __dtrace_probe_tcp___send(int);\nvoid _start(void) { __dtrace_probe_tcp___send(1); }\n",
			"kernel": "void sdt_probe_stub(unsigned id, long n) {}\nvoid (*sdt_probe_func)(unsigned, long) = sdt_probe_stub;\n",
		} {
			disk.Write(t, name+".c", source)
			tools.Must(t, "gcc", "-O2", "-fno-pic", "-c", name+".c")
		}
		for _, link := range []struct{ layout, objects, want string }{
			{"freebsd", "tcp.o arc.o dmu.o kernel.o", "arc.o and 1 more: compiled with the kernel's own sys/sdt.h"},
			{"freebsd", "-r tcp.o dmu.o", "dmu.o: compiled with the kernel's own sys/sdt.h"},
			{"freebsd", "-r dmu.o", "dmu.o: compiled with the kernel's own sys/sdt.h"},
			{"freebsd", "tcp.o kernel.o", ""},
			{"pairs", "tcp.o arc.o kernel.o", ""},
		} {
			args := append([]string{"--layout=" + link.layout, "--", "-o", "kernel"}, strings.Fields(link.objects)...)
			out, err := wrapped(l, args...)
			if err != nil {
				t.Fatal(args, err, out)
			}
			expect.Equal(t, link.want != "", strings.Contains(out, "sdt_probe_func"), "%v: warns:\n%s", args, out)
			expect.Contains(t, out, link.want, "%v", args)
		}
	})
}

// A probe that nothing defines is a warning where a source defines others of its provider,
// and an error with a flag. A provider without any definition is no reason for either.
func TestMisspeltProbe(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "shop.c", `#include <unistd.h>
#include <sdt.h>
SDT_PROVIDER_DEFINE(shop);
SDT_PROBE_DEFINE1(shop, , , placed, "int");
void use(int n);
int main(void) { SDT_PROBE1(shop, , , placed, 1); use(1); return 0; }
`)
		disk.Write(t, "use.c", "void __dtrace_probe_shop___placde(int), __dtrace_probe_other___free(int);\n"+
			"void use(int n) { __dtrace_probe_shop___placde(n); __dtrace_probe_other___free(n); }\n")
		tools.Must(t, "gcc", "-O2", "-c", "-I"+tools.Root("include"), "shop.c", "use.c")
		const found = "use.o: nothing defines sdt_shop___placde, and the link defines other probes of shop; correct the name or define the probe\n"
		out := gcc(t, l, "-o", "program", "shop.o", "use.o")
		expect.Equal(t, "sdtconvert: warning: "+found, out, "says")
		run(t, "program")
		// What the first link added is not a definition in a source.
		tools.Must(t, converter, "stubs", "-o", "stubs.o", "use.o")
		expect.Equal(t, "", gcc(t, l, "-o", "program", "shop.o", "use.o", "stubs.o"), "says")
		tools.Must(t, "rm", "program")
		t.Setenv("SDTCONVERT_FLAGS", "--no-undefined-probes")
		out, err := tools.Try("gcc", "-B"+wrappers, l.Use(), "-o", "program", "shop.o", "use.o")
		if err == nil || !strings.Contains(out, "sdtconvert: "+found) || strings.Contains(out, "placed\n") {
			t.Errorf("says %q, %v", out, err)
		}
		if _, err := tools.Try("test", "!", "-e", "program"); err != nil {
			t.Error("it was linked")
		}
	})
}

// Records of another prefix name probe objects that the link would not define.
func TestOtherProbePrefix(t *testing.T) {
	enter(t, linker("bfd").Path)
	tools.Need(t, "ar")
	compile(t, "main.c", "sub/second.c")
	tools.Must(t, converter, "--probe-object-prefix", "xx_", "sub/second.o")
	tools.Must(t, "ar", "rcs", "libsecond.a", "sub/second.o")
	for _, second := range []string{"sub/second.o", "libsecond.a"} {
		out, err := tools.Try("gcc", "-B"+wrappers, "-o", "program", "main.o", second)
		if err == nil || !strings.Contains(out, "converted before with another --probe-object-prefix: its records name xx_app___second; ") {
			t.Errorf("%s: %s, %v", second, out, err)
		}
	}
	// If nothing is converted, the link is refused only where it has no definition of the names.
	tools.Must(t, converter, "--probe-object-prefix", "xx_", "main.o")
	disk.Write(t, "define.c", "int xx_app___second, xx_app___start;\n")
	tools.Must(t, "gcc", "-c", "define.c")
	for _, flag := range []string{"", "--in-place"} {
		t.Setenv("SDTCONVERT_FLAGS", flag)
		for _, output := range [][]string{{"-o", "library.so", "-shared", "sub/second.o"}, {"-o", "program", "main.o", "sub/second.o"}} {
			out, err := tools.Try("gcc", append([]string{"-B" + wrappers}, output...)...)
			if err == nil || !strings.Contains(out, "its records name xx_app___second; ") || strings.Contains(out, "undefined") {
				t.Errorf("%s %s: %s, %v", flag, output, out, err)
			}
		}
		tools.Must(t, "gcc", "-B"+wrappers, "-o", "program", "main.o", "sub/second.o", "define.o")
	}
	t.Setenv("SDTCONVERT_FLAGS", "")
	if out, err := combined(converter, "sub/second.o"); exitCode(err) != 1 || !strings.Contains(out, "another --probe-object-prefix") {
		t.Errorf("%s, %v", out, err)
	}
	// All of one prefix go together.
	t.Setenv("SDTCONVERT_FLAGS", "--probe-object-prefix=xx_")
	tools.Must(t, "gcc", "-B"+wrappers, "-o", "program", "main.o", "sub/second.o")
}

const usesOnly = `
void __dtrace_probe_icmp_kernel_unreach_pkt__receive(int, unsigned char);
int main(int argc, char **argv)
{
	(void)argv;
	__dtrace_probe_icmp_kernel_unreach_pkt__receive(argc, 200);
	return 0;
}
`

const definesOnly = `
#include <sdt.h>
SDT_PROVIDER_DEFINE(icmp);
SDT_PROBE_DEFINE2(icmp, kernel, unreach, pkt__receive, "int", "unsigned char");
`

var noteNames = regexp.MustCompile(`Provider: (.*)\n\s*Name: (.*)\n.*\n\s*Arguments: (.*)\n`)

// namesInNotes are provider, name and arguments of all notes of a file.
func namesInNotes(t *testing.T, file string) []string {
	t.Helper()
	var all []string
	for _, m := range noteNames.FindAllStringSubmatch(tools.Must(t, "readelf", "-nW", file), -1) {
		all = append(all, strings.Join(m[1:], " "))
	}
	slices.Sort(all)
	return all
}

// TestNotesOfOtherInputs names notes by the definition of the probe: in an object, in an
// archive, in a shared library, in an object that was converted, in -r, and among code of
// link-time optimisation.
func TestNotesOfOtherInputs(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		t.Setenv("SDTCONVERT_FLAGS", "--stapsdt")
		disk.Write(t, "use.c", usesOnly)
		disk.Write(t, "define.c", definesOnly)
		flags := []string{"-B" + wrappers, l.Use(), "-O2", "-fPIC", "-I" + tools.Root("include")}
		tools.Must(t, "gcc", append(flags, "-c", "use.c", "define.c")...)
		tools.Must(t, "ar", "rcs", "libdefine.a", "define.o")
		tools.Must(t, "gcc", append(flags, "-shared", "define.o", "-o", "libshared.so")...)
		tools.Must(t, converter, "--stapsdt", "-o", "converted.o", "define.o")
		for name, inputs := range map[string][]string{
			"object": {"use.o", "define.o"}, "archive": {"use.o", "-L.", "-ldefine"}, "library": {"use.o", "./libshared.so"},
			"converted": {"converted.o", "use.o"}, "relocatable": {"-r", "-nostdlib", "use.o", "define.o"},
			"sources": {"use.c", "define.c"}, "generated": {"-flto", "use.c", "define.c"},
		} {
			if name == "generated" && !l.Can(toolchains.GCCPlugin) {
				continue
			}
			tools.Must(t, "gcc", slices.Concat(flags, inputs, []string{"-o", name + ".out"})...)
			if got, want := namesInNotes(t, name+".out"), []string{"icmp pkt__receive -4@%edi 1@%sil"}; !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
}

// noteName matches what readelf prints of a note.
var noteName = regexp.MustCompile(`Provider: (.*)\n\s*Name: (.*)\n`)

// Objects that sdtconvert cc converts each by itself do not tell the names of probes with a module or a function. A link gives their
// notes these names; without one, cc says so and check finds them.
func TestNamesOfNotes(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "define.c", "#include <sdt.h>\nSDT_PROVIDER_DEFINE(icmp);\nSDT_PROBE_DEFINE1(icmp, , unreach, pkt__receive, \"int\");\n"+
			"SDT_PROBE_DEFINE1(icmp, kernel, unreach, pkt__send, \"int\");\nint sent(int c) { SDT_PROBE1(icmp, kernel, unreach, pkt__send, c); return c; }\n")
		disk.Write(t, "use.c", "#include <sdt.h>\nSDT_PROVIDER_DECLARE(icmp);\nSDT_PROBE_DECLARE(icmp, , unreach, pkt__receive);\nSDT_PROBE_DECLARE(icmp, kernel, unreach, pkt__send);\n"+
			"int sent(int);\nint main(int c, char **v) { SDT_PROBE1(icmp, , unreach, pkt__receive, c); if (SDT_PROBE_ENABLED(icmp, kernel, unreach, pkt__send)) c++;\n"+
			"SDT_PROBE1(icmp, kernel, unreach, pkt__send, c); DTRACE_PROBE1(shop___placed, int, c); return sent(c) != 1; }\n")
		said := ""
		for _, source := range []string{"define.c", "use.c"} {
			out, err := tools.Try(converter, "cc", "--", "gcc", "-O1", "-I"+tools.Root("include"), "-c", source)
			expect.OK(t, err, "%s", out)
			said += out
		}
		expect.Contains(t, said, "use.o: another object defines the probe icmp__unreach_pkt__receive, so its notes name it sdt:icmp__unreach_pkt__receive")
		tools.Must(t, "gcc", "-B"+tools.Driver(t, l.Path), "-o", "late", "define.o", "use.o")
		out, err := tools.Try(converter, "check", "late")
		if exitCode(err) != 1 || !strings.Contains(out, "[note-name]") {
			t.Errorf("%v, %s", err, out)
		}
		check := untouched(t, "define.o", "use.o")
		gcc(t, l, "-o", "program", "define.o", "use.o")
		check()
		tools.Must(t, "./program")
		names := map[string]int{}
		for _, m := range noteName.FindAllStringSubmatch(tools.Must(t, "readelf", "-nW", "program"), -1) {
			names[m[1]+":"+m[2]]++
		}
		expect.Equal(t, map[string]int{"icmp:pkt__receive": 1, "icmp:pkt__send": 2, "shop:placed": 1}, names, "notes")
		tools.Must(t, converter, "check", "--require-notes", "--require", "icmp:::pkt-send", "program")
		if symbols := tools.Output(t, "nm", noPlugins, "program"); strings.Contains(symbols, "sdt_icmp__unreach_pkt__receive_semaphore") || !strings.Contains(symbols, "icmp_pkt__send_semaphore") {
			t.Errorf("semaphores: %s", symbols)
		}
	})
}

// recordSources call probes with arguments that notes leave out, and use one probe in two objects.
var recordSources = map[string]string{
	"a.c": "#include <sdt.h>\nint a(int x) { DTRACE_PROBE1(shop___both, int, x); return x; }\nint unused(int x) { DTRACE_PROBE1(shop___unused, int, x); return x; }\n",
	"b.c": "#include <sdt.h>\nint a(int); int b(int x) { DTRACE_PROBE1(shop___both, int, x); return a(x); }\n",
	"main.c": "struct large { long words[5]; };\nvoid __dtrace_probe_shop___price(double, int), __dtrace_probe_shop___item(struct large, int);\n" +
		"int b(int); int main(int c, char **v) { struct large l = {{c}}; __dtrace_probe_shop___price(c * 1.5, c); __dtrace_probe_shop___item(l, c); return b(c) != 1; }\n",
}

// Flags that move records apart are refused, those that dissolve groups or drop operands are named for what they do, and calls whose
// notes leave out arguments are no mismatch.
func TestFlagsForRecords(t *testing.T) {
	l := linker("bfd")
	tools.Need(t, "gcc", l.Path)
	enter(t, l.Path)
	for name, text := range recordSources {
		disk.Write(t, name, text)
	}
	tools.Must(t, "gcc", "-O1", "-g", "-ffunction-sections", "-I"+tools.Root("include"), "-c", "main.c", "a.c", "b.c")
	inputs := []string{"-o", "program", "main.o", "a.o", "b.o"}
	refuse := func(want string, args ...string) {
		t.Helper()
		out, err := tools.Try("gcc", append([]string{"-B" + wrappers, l.Use()}, args...)...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
		disk.Absent(t, "program")
	}
	refuse("__start_sdt_instances_set leads to one", append(inputs, "-Wl,--unique")...)
	refuse("__start_sdt_instances_set leads to one", append(inputs, "-Wl,--unique=sdt_*")...)
	gcc(t, l, append(inputs, "-Wl,--unique=.text.*")...)
	tools.Must(t, converter, "check", "--require-notes", "program")
	expect.OK(t, os.Remove("program"))

	for _, object := range []string{"a", "b"} {
		gcc(t, l, "-r", "-Wl,--force-group-allocation", "-o", object+".one.o", object+".o")
	}
	gcc(t, l, "-o", "program", "main.o", "a.one.o", "b.one.o")
	out := tools.Must(t, converter, "check", "--require-notes", "program")
	expect.Lacks(t, out, "duplicate-probe")
	expect.OK(t, os.Remove("program"))

	tools.Must(t, l.Path, "-r", "--gc-sections", "-e", "a", "-o", "a.gc.o", "a.o")
	refuse("ld -r --gc-sections does", "-o", "program", "main.o", "a.gc.o", "b.o")
	gcc(t, l, "-r", "-Wl,--gc-sections", "-Wl,-e,a", "-o", "a.gc.o", "a.o")
	gcc(t, l, "-o", "program", "main.o", "a.gc.o", "b.o")
	expect.Lacks(t, tools.Must(t, converter, "list", "--names", "program"), "unused")
}

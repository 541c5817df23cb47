package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// tapped is a source with a probe that is defined where it is used, and a guard of it.
const tapped = `#include "program.h"
#ifdef __cplusplus
DTRACE_PROBE_DECLARE(app___tap);
#endif
C int tap(int n)
{
	if (DTRACE_PROBE_ENABLED(app___tap))
		DTRACE_PROBE1(app___tap, int, n);
	return n;
}
`

// asWritten are the flags with which sdt.h has the forms that it has by itself.
var asWritten = []string{"-USDT_CALLS", "-USDT_NO_SEMAPHORES"}

// A program whose objects no conversion has met says so, and nothing that leads away from it;
// so does one with a single such object, of each probe.
func TestNotConverted(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled(asWritten...)
		b.write("tap.c", tapped)
		b.compile("tap.o", "tap.c", asWritten...)
		b.run("cp", "tap.o", "early.o")
		b.run("cp", "fire.o", "firek.o")
		b.run("cp", "define.o", "definek.o")
		b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.sdt_unconverted", "early.o") // as earlier headers made it
		b.convert("--stapsdt", "firek.o", "definek.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, mode := range []string{"-pie", "-no-pie", "-shared"} {
				b.link(l, "prog", "fire.o", "define.o", "tap.o", mode)
				b.message(b.finds([]string{"not-converted prog  "}, "prog"), "not converted (3 probes, app___start first): link with -B")
				b.link(l, "prog", "firek.o", "definek.o", "tap.o", mode)
				b.finds([]string{"not-converted prog  app___tap"}, "--allow=early-semaphore", "prog")
			}
			ran := tools.Command{Directory: b.directory}.Result(b, converter, "list", "prog")
			expect.Equal(b, 0, ran.Status, "list: exit status")
			expect.Contains(b, ran.Stderr, "tracepoints of 1 probe are not converted, and not listed: link with -B")
			b.link(l, "lib.so", "early.o", "-shared")
			b.message(b.finds([]string{"not-converted lib.so  "}, "lib.so"), "not converted: link with -B")
			ran = tools.Command{Directory: b.directory}.Result(b, converter, "list", "lib.so")
			expect.Equal(b, 1, ran.Status, "list: exit status")
			expect.Contains(b, ran.Stderr, "lib.so: holds no records of probes, and is not converted: link with -B")
			b.link(l, "prog", "firek.o", "definek.o", "-pie")
			b.clean("--allow=early-semaphore", "prog")
			if left := disk.OpenELF(b, b.path("prog")).Section(".sdt_unconverted"); left != nil && left.Size > 0 {
				b.Errorf("%+v", left)
			}
		})
	})
}

// A library that exports what it defines and has no site is not what it should be, unless a
// program has the sites.
func TestLibraryOfDefinitions(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("only.c", "#include \"program.h\"\nSDT_PROVIDER_DEFINE(app);\nSDT_PROBE_DEFINE1(app, , , start, \"int\");\n")
		b.write("user.c", "#include \"program.h\"\nSDT_PROBE_DECLARE(app, , , start);\nC int fire(int n) { SDT_PROBE1(app, , , start, n); return n; }\n")
		b.compile("only.o", "only.c")
		b.compile("user.o", "user.c")
		b.convert("user.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "libonly.so", "-shared", "only.o")
			b.message(b.finds([]string{"not-converted libonly.so  "}, "libonly.so"), "it defines 1 probe, and no file that was given has a site of any")
			b.link(l, "libuser.so", "-shared", "user.o")
			b.clean("libonly.so", "libuser.so")
			b.clean("libuser.so", "libonly.so")
			// dlopen fails if nothing exports the probe.
			found := b.finds([]string{"unresolved-probe libuser.so fire app___start"}, "libuser.so")
			b.message(found, "add what sdtconvert stubs writes")
			expect.Equal(b, "error", found[0].Severity)
			b.convert("stubs", "-o", "stubs.o", "user.o")
			b.link(l, "libuser.so", "-shared", "user.o", "stubs.o")
			b.clean("libuser.so")
		})
	})
}

// A check of nothing is no check.
func TestNoProbes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("plain.c", "int plain;\n")
		b.compile("plain.o", "plain.c")
		b.run(b.machine.Tool("ar"), "rc", "empty.a")
		for _, name := range []string{"plain.o", "empty.a"} {
			b.finds([]string{"no-probes   "}, name)
			b.clean("--allow=no-probes", name)
		}
		b.program()
		b.clean("plain.o", "fire.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "plain.so", "-shared", "plain.o")
			b.finds([]string{"missing-note plain.so  "}, "--require-notes", "plain.so")
		})
	})
}

// kernelRecords has a record that FreeBSD's kernel makes by itself, and no other.
const kernelRecords = `
.text
.globl _start
_start:
1: .fill 16, 1, 0x90
.section set_sdt_tracepoint_set, "aw", %progbits
.balign 8
.8byte probe, 1b, 0, 0
.data
probe: .zero 64
`

// Records of the kernel's own are of no conversion, which could differ from others.
func TestKernelRecords(t *testing.T) {
	b := newBuild(t, combinations[0])
	b.write("kernel.s", kernelRecords)
	b.run(b.machine.Tool("gcc"), "-nostdlib", "-static", "-o", "kernel", "kernel.s")
	b.finds([]string{}, "kernel")
}

// An object that was compiled with the header of FreeBSD's kernel, and what is linked from
// it. The kernel, which defines the hook, and a provider, which sets it, are clean.
func TestKernelTracepoint(t *testing.T) {
	b := newBuild(t, combinations[0])
	const hook = "void (*sdt_probe_func)(unsigned, long)"
	for name, text := range map[string]string{
		"arc":      "extern " + hook + ";\nvoid arc(long n) { SDT_PROBE1(arc, , , hit, n); sdt_probe_func(7, n); }\n",
		"kernel":   "void sdt_probe_stub(unsigned id, long n) { SDT_PROBE1(kernel, , , hit, n); }\n" + hook + " = sdt_probe_stub;\n",
		"provider": "extern " + hook + ";\nvoid sdt_probe_stub(unsigned, long);\nvoid unload(long n) { SDT_PROBE1(provider, , , hit, n); sdt_probe_func = sdt_probe_stub; }\n",
	} {
		b.write(name+".c", fmt.Sprintf("#include \"sdt.h\"\nSDT_PROVIDER_DEFINE(%s);\nSDT_PROBE_DEFINE1(%[1]s, , , hit, \"long\");\n%s", name, text))
		b.compile(name+".o", name+".c")
		b.convert(name + ".o")
		b.clean(name + ".o") // of no system
		b.brandFreeBSD(name + ".o")
	}
	b.finds([]string{"kernel-tracepoint arc.o  "}, "arc.o", "kernel.o", "provider.o")
	b.clean("--allow=kernel-tracepoint", "arc.o")

	l := b.machine.Linker("lld")
	b.link(l, "arc.so", "arc.o", "-shared", "-nostdlib") // as arm64 has its modules
	b.brandFreeBSD("arc.so")
	b.finds([]string{"kernel-tracepoint arc.so  "}, "arc.so")
	b.link(l, "zfs.ko", "arc.o", "-r", "-nostdlib")
	b.brandFreeBSD("zfs.ko")
	b.finds([]string{"kernel-tracepoint zfs.ko  "}, "zfs.ko")
	b.link(l, "kernel", "arc.o", "kernel.o", "-shared", "-nostdlib")
	b.brandFreeBSD("kernel")
	b.clean("kernel")
}

// lostNotes removes the notes from prog, as do tools that keep only what is loaded. That is one finding, also
// for a user with --require-notes; what follows from it is one only where that finding is not wanted.
func (b *build) lostNotes() {
	b.Helper()
	b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.note.stapsdt", "prog", "silent")
	for _, flags := range [][]string{{"silent"}, {"--require-notes", "silent"}, {b.names("prog"), "--require=none", "--require-notes", "silent"}} {
		b.message(b.finds([]string{"missing-note silent  "}, flags...), "link again, and keep .note.stapsdt")
	}
	b.finds([]string{"dead-guard silent fire app___start"}, "--allow=missing-note", "silent")
	b.finds([]string{"dead-guard silent fire app___start", "missing-probe   none"}, "--allow=missing-note", "--require=none", "silent")
}

// Tools that strip what is not loaded take the notes out, and leave the guards, which no tracer
// raises then: of converted objects, and of SystemTap's macros.
func TestStrippedNotes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled(asWritten...)
		b.convert("--stapsdt", "fire.o", "define.o")
		b.theirs("one.o", "one", definedIn("", ".probes")...)
		b.write("main.c", "int main(void) { return 0; }\n")
		b.compile("main.o", "main.c")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, objects := range [][]string{{"fire.o", "define.o"}, {"one.o", "main.o"}} {
				b.link(l, "prog", objects...)
				b.clean("--allow=early-semaphore", "prog")
				b.run(toolchains.LLVM("llvm-strip"), "-o", "stripped", "prog")
				b.message(b.finds([]string{"missing-note stripped  "}, "--allow=unanchored-site", "stripped"), "has .stapsdt.base and no note, so tracers find no site; link again")
				b.run(toolchains.LLVM("llvm-objcopy"), "--strip-sections", "prog", "bare")
				ran := tools.Command{Directory: b.directory}.Result(b, converter, "check", "bare", objects[0])
				expect.Contains(b, ran.Stderr, "bare: has no section headers, so its notes are not found")
				b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.stapsdt.base", "prog", "unbased")
				b.message(b.finds([]string{"broken-note unbased  "}, "--allow=early-semaphore", "unbased"), "without which gdb finds no probe")
			}
		})
	})
}

// Where records are of a later version, nothing is said of sites.
func TestLaterRecordsWithoutNotes(t *testing.T) {
	b := newBuild(t, combinations[0])
	b.compiled(asWritten...)
	b.convert("--stapsdt", "fire.o", "define.o")
	b.eachLinker(func(b *build, l toolchains.Linker) {
		b.link(l, "prog", "fire.o", "define.o")
		b.run("objcopy", "--remove-section=.note.stapsdt", "--remove-section=.stapsdt.base", "prog", "without")
		b.run("objcopy", "--rename-section=sdt_instances_set=sdt_instances2_set", "without", "later")
		out, err := tools.Try(converter, "check", b.path("later"))
		if err == nil || !strings.Contains(out, "sdt_instances2_set: records of version 2") || strings.Contains(out, "not-converted") || strings.Contains(out, "dead-guard") {
			b.Errorf("%s, %v", out, err)
		}
	})
}

// An image whose records have notes, and others have none, and one of whose nops has an
// argument more than its definition.
func TestMixedNotes(t *testing.T) {
	b := newBuild(t, combinations[0])
	b.compiled()
	b.write("three.c", threeArguments)
	b.compile("three.o", "three.c", "-USDT_CALLS")
	b.convert("--stapsdt", "define.o", "three.o")
	b.convert("fire.o")
	b.eachLinker(func(b *build, l toolchains.Linker) {
		b.link(l, "prog", "fire.o", "define.o", "three.o")
		b.finds([]string{
			"argument-mismatch prog three app___start",
			"missing-note prog fire app___start", "missing-note prog main app___start", "missing-note prog unused app___start",
		}, "prog")
	})
}

// Images of one program are converted with the same flags, or tracers find the probes of a part.
func TestImagesWithAndWithoutNotes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("only.c", "#include \"program.h\"\nSDT_PROVIDER_DEFINE(app);\nSDT_PROBE_DEFINE1(app, , , start, \"int\");\nC int fire(int n) { SDT_PROBE1(app, , , start, n); return n; }\n")
		b.compile("only.o", "only.c")
		b.convert("-o", "pairs.o", "only.o")
		b.convert("--stapsdt", "-o", "noted.o", "only.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, name := range []string{"pairs", "noted"} {
				b.link(l, name+".so", "-shared", name+".o")
			}
			b.clean("pairs.so", "pairs.so")
			b.clean("noted.so")
			for _, files := range [][]string{{"pairs.so", "noted.so"}, {"noted.so", "pairs.so"}, {"pairs.so", "again.so", "noted.so"}} {
				b.run("cp", "pairs.so", "again.so")
				for _, f := range b.check(files...).Findings {
					if f.Rule != "mixed-notes" || f.File == "noted.so" || !strings.HasPrefix(f.Message, "records without notes here, records with notes in noted.so; compile and convert it again") {
						b.Errorf("%q: %+v", files, f)
					}
				}
			}
			b.clean("--allow=mixed-notes", "pairs.so", "noted.so")
			// The cause is another if an image has lost its notes.
			b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.note.stapsdt", "noted.so", "lost.so")
			for _, files := range [][]string{{"noted.so", "lost.so"}, {"lost.so", "noted.so"}} {
				b.finds([]string{"missing-note lost.so  "}, files...)
			}
		})
	})
}

// No kernel reads notes. The sections of modules are those of modpost and objtool.
func TestModuleWithNotes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("module.c", "#include \"program.h\"\nSDT_PROVIDER_DEFINE(app);\nSDT_PROBE_DEFINE1(app, , , start, \"int\");\nC int fire(int n) { SDT_PROBE1(app, , , start, n); return n; }\n"+
			"__attribute__((section(\".modinfo\"), used)) static const char license[] = \"license=GPL\";\n")
		b.compile("module.o", "module.c")
		b.run(converter, "-o", "default.o", "module.o")
		b.run(converter, "--stapsdt", "-o", "noted.o", "module.o")
		b.convert("-o", "pairs.o", "module.o")
		expect.Equal(b, string(disk.Read(b, b.path("pairs.o"))), string(disk.Read(b, b.path("default.o"))), "the default of a module")
		b.clean("default.o")
		b.message(b.finds([]string{"kernel-notes noted.o  "}, "noted.o"), "convert it with --layout pairs")
	})
}

// shop is the program of the recipes in docs/check.md.
const shop = `#include <sdt.h>

SDT_PROVIDER_DEFINE(shop);
SDT_PROBE_DEFINE2(shop, , , placed, "int", "char *");
SDT_PROBE_DEFINE1(shop, , , sent, "int");

static __attribute__((noinline)) void order(int i, char *what)
{
	if (SDT_PROBE_ENABLED(shop, , , placed))
		SDT_PROBE2(shop, , , placed, i, what);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		order(i, argv[i]);
		SDT_PROBE1(shop, , , sent, i);
	}
}
`

// recipe is what docs/check.md has of one, which is installed elsewhere here.
type recipe struct {
	*testing.T
	directory, page string
}

// block returns the fenced block behind a line of the page.
func (r *recipe) block(line, kind string) string {
	r.Helper()
	_, text, ok := strings.Cut(r.page, line)
	_, text, found := strings.Cut(text, "\n```"+kind+"\n")
	text, _, closed := strings.Cut(text, "\n```\n")
	if !ok || !found || !closed {
		r.Fatalf("docs/check.md has no block of %q behind %q", kind, line)
	}
	return text + "\n"
}

// steps returns the commands of a service's block, those of them that are for a shell.
func steps(yaml, before string) (all []string) {
	for _, line := range strings.Split(yaml, "\n") {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), before); ok {
			all = append(all, command)
		}
	}
	return all
}

func (r *recipe) write(name, text string) {
	r.Helper()
	disk.Write(r, filepath.Join(r.directory, name), text)
}

// sh runs a command as a service does.
func (r *recipe) sh(command string) (string, error) {
	r.Helper()
	c := tools.Command{Directory: r.directory, Env: []string{
		"PATH=" + filepath.Join(r.directory, "bin") + ":" + os.Getenv("PATH"), "CPATH=" + include, "LC_ALL=C",
	}}
	return c.Try("sh", "-ec", command)
}

// passes runs the steps, of which only the last may fail, and then has to say why.
func (r *recipe) passes(steps []string, why ...string) {
	r.Helper()
	for i, step := range steps {
		out, err := r.sh(step)
		last := i == len(steps)-1
		if (err != nil) != (last && len(why) > 0) {
			r.Fatalf("%s: %v\n%s", step, err, out)
		}
		for _, text := range why {
			if last && !strings.Contains(out, text) {
				r.Errorf("%s does not say %q:\n%s", step, text, out)
			}
		}
	}
}

// The recipes pass for a program, and fail when a probe is gone, has another name or another
// number of arguments, or its note is lost.
func TestRecipes(t *testing.T) {
	tools.Need(t, "cmake", "make", "cc")
	r := &recipe{t, t.TempDir(), string(disk.Read(t, tools.Root("docs", "check.md")))}
	for _, name := range []string{"bin/sdtconvert", "libexec/ld"} {
		path := filepath.Join(r.directory, name)
		expect.OK(t, os.Mkdir(filepath.Dir(path), 0o777))
		expect.OK(t, os.Symlink(converter, path))
	}
	project := strings.ReplaceAll(r.block("### With CMake", "cmake"), "/usr/libexec/sdtconvert", filepath.Join(r.directory, "libexec"))
	r.write("CMakeLists.txt", project)
	r.write("probes.txt", r.block("`probes.txt`:", ""))
	gitHub, gitLab := steps(r.block("### With GitHub", "yaml"), "- run: "), steps(r.block("### With GitLab", "yaml"), "- ")
	if len(gitHub) != 3 || len(gitLab) != 3 {
		t.Fatalf("%q\n%q", gitHub, gitLab)
	}
	test := "ctest --test-dir build --output-on-failure"
	for _, c := range []struct{ old, new, gitHub, text string }{
		{"", "", "", ""},
		{"\t\tSDT_PROBE1(shop, , , sent, i);\n", "", "::error file=probes.txt,line=3,title=missing-probe::", "probes.txt:3: error: shop:::sent: no site has this probe, which is required: its tracepoint was removed, or its record was lost [missing-probe]"},
		{"SDT_PROBE1(shop, , , sent, i)", "SDT_PROBE2(shop, , , sent, i, 1)", "::error file=orders.c,line=17,title=argument-mismatch::", "a call has 2 arguments"},
	} {
		source := strings.Replace(shop, c.old, c.new, 1)
		if c.old != "" && source == shop {
			t.Fatalf("no %q", c.old)
		}
		r.write("orders.c", source)
		if c.old == "" {
			r.passes(gitHub)
			r.passes(append(gitLab[:len(gitLab):len(gitLab)], test))
			continue
		}
		r.passes(gitHub, c.gitHub)
		r.passes(gitLab[len(gitLab)-1:], c.text)
		r.passes([]string{test}, "probes ...........................***Failed")
	}
	// Without notes.
	r.write("orders.c", shop)
	r.write("CMakeLists.txt", project+"set_property(TARGET shop PROPERTY RULE_LAUNCH_LINK \"env SDTCONVERT_FLAGS=--no-stapsdt\")\n")
	r.passes(gitHub, "title=missing-note::", "link again with notes (--stapsdt beside a --layout)")
}

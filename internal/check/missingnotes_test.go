package check_test

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// lostNotes removes the notes from prog. Its manifest knows that there were some, as does a user
// with --require-notes; and nothing raises the semaphore of the test.
func (b *build) lostNotes(manifest string) {
	b.Helper()
	b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.note.stapsdt", "prog", "silent")
	dead := "dead-guard silent fire app___start"
	b.finds([]string{dead, "missing-note silent  "}, "silent")
	lost := []string{
		dead, "missing-note silent  ", "missing-note silent fire app___start", "missing-note silent main app___start",
		"missing-note silent stop app___stop", "missing-note silent unused app___start",
	}
	for _, f := range append(b.finds(lost, "--manifest", "m.json", "silent"), b.finds(lost, "--require-notes", "silent")...) {
		if f.Line == 0 && f.Function != "" {
			b.Errorf("%+v", f)
		}
	}
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
				b.message(b.finds([]string{"missing-note stripped  "}, "--allow=dead-guard", "--allow=unanchored-site", "stripped"), "has .stapsdt.base and no note, so tracers find no site; link again")
				b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.stapsdt.base", "prog", "unbased")
				b.message(b.finds([]string{"broken-note unbased  "}, "--allow=early-semaphore", "unbased"), "without which gdb finds no probe")
			}
		})
	})
}

// Where records show that the probe of a guard has sites, the cure is notes, and no other name. Where records
// are of a later version, nothing is said of sites.
func TestImageWithoutTraceOfNotes(t *testing.T) {
	b := newBuild(t, combinations[0])
	b.compiled(asWritten...)
	b.convert("--stapsdt", "fire.o", "define.o")
	b.eachLinker(func(b *build, l toolchains.Linker) {
		b.link(l, "prog", "fire.o", "define.o")
		b.run("objcopy", "--remove-section=.note.stapsdt", "--remove-section=.stapsdt.base", "prog", "without")
		b.message(b.finds([]string{"dead-guard without fire app_start"}, "without"), "no site of the probe has a note; convert every object with notes")
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

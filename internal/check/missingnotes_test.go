package check_test

import (
	"testing"

	"sdtconvert/internal/testkit/toolchains"
)

// lostNotes removes the notes from prog. Its manifest knows that there were some, as does a user
// with --require-notes; and nothing raises the semaphore of the test.
func (b *build) lostNotes(manifest string) {
	b.Helper()
	b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.note.stapsdt", "prog", "silent")
	dead := "dead-guard silent fire app___start"
	b.finds([]string{dead}, "silent")
	lost := []string{
		dead, "missing-note silent fire app___start", "missing-note silent main app___start",
		"missing-note silent stop app___stop", "missing-note silent unused app___start",
	}
	for _, f := range append(b.finds(lost, "--manifest", "m.json", "silent"), b.finds(lost, "--require-notes", "silent")...) {
		if f.Line == 0 {
			b.Errorf("%+v", f)
		}
	}
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

package states

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// tail is a function that ends with a jump, which a record says is a site. STUB
// is what it goes to.
const tail = `
.text
.globl main
.type main, @function
main: .cfi_startproc
nop
0: .byte 0xe9
.long STUB - . - 4
.cfi_endproc
.size main, . - main
.type STUB, @function
STUB: ret
.size STUB, . - STUB
.section sdt_instances_set, "aw", @progbits
.balign 8
.quad sdt_app___hit, 0b
.section .data.probes, "aw", @progbits
.balign 8
sdt_app___hit: .quad 1
.section .note.GNU-stack, "", @progbits
`

// A jump to a stub is not a disabled form to list and check: it is live, or unknown,
// and that is a finding.
func TestLiveTailCalls(t *testing.T) {
	tools.Need(t, "gcc", "strip")
	for _, c := range []struct {
		stub, rule string
		flags      []string
		state      string
	}{
		{"__dtrace_probe_app___hit", "live-call", nil, "live"},
		{"custom_app___hit", "unknown-site", nil, "unknown"},
		{"custom_app___hit", "live-call", []string{"--prefix", "custom_"}, "live"},
		{"custom_app___hit", "live-call", []string{"--symbol", "custom_app___hit"}, "live"},
	} {
		f := newDirectory(t)
		f.write("in.s", strings.ReplaceAll(tail, "STUB", c.stub))
		f.must("gcc", "-o", "program", "in.s")
		f.must("strip", "-o", "stripped", "program")
		f.checkTail(c.flags, "program", c.state, c.rule)
		f.checkTail(c.flags, "stripped", "unknown", "unknown-site")
	}
}

func (f directory) checkTail(flags []string, file, state, rule string) {
	f.Helper()
	list := f.run(append([]string{"list", "-v", file}, flags...)...)
	if !strings.Contains(list.Stdout, "  tail  "+state+"\n") || (list.Status == 1) != (state == "unknown") {
		f.Errorf("list %s %q: status %d, want %s\n%s%s", file, flags, list.Status, state, list.Stdout, list.Stderr)
	}
	check := f.run(append([]string{"check", file}, flags...)...)
	if check.Status != 1 || strings.Count(check.Stdout, "error: ") != 1 || !strings.Contains(check.Stdout, "["+rule+"]") {
		f.Errorf("check %s %q: status %d, want one error, %s\n%s%s", file, flags, check.Status, rule, check.Stdout, check.Stderr)
	}
}

// A stub that a shared library or a program leaves to the loader is reached through an entry
// of the procedure linkage table, whose slot tells check its name also once the file is
// stripped.
func TestLiveTailCallsOfTheLoader(t *testing.T) {
	tools.Need(t, "gcc", "strip")
	f := newDirectory(t)
	text := strings.ReplaceAll(tail, "STUB, @function\nSTUB: ret\n.size STUB, . - STUB\n", "other, @function\nother: ret\n")
	f.write("in.s", strings.ReplaceAll(text, ".byte 0xe9\n.long STUB - . - 4", "jmp __dtrace_probe_app___hit@PLT"))
	f.must("gcc", "-shared", "-o", "library", "in.s")
	f.must("strip", "-o", "stripped", "library")
	for _, file := range []string{"library", "stripped"} {
		f.checkTail(nil, file, "unknown", "live-call")
	}
}

// A probe object whose symbol has another prefix than the flag says has no name.
func TestProbesWithoutAName(t *testing.T) {
	tools.Need(t, "gcc")
	f := newDirectory(t)
	f.write("in.c", "void __dtrace_probe_app___hit(void);\nint x;\nvoid f(void) { __dtrace_probe_app___hit(); x++; }\n")
	f.must("gcc", "-O2", "-c", "in.c")
	f.convert("--probe-object-prefix=zz_", "in.o")
	for _, args := range [][]string{{"list", "-v", "in.o"}, {"list", "--json", "in.o"}, {"check", "in.o"}, {"inspect", "in.o"}} {
		if got := f.run(args...); strings.Contains(got.Stdout+got.Stderr, "sdt:") || strings.Contains(got.Stdout, `"provider": "sdt"`) {
			t.Errorf("%q: %s%s", args, got.Stdout, got.Stderr)
		}
	}
	list := f.run("list", "in.o")
	if !strings.Contains(list.Stdout, "          -              in.o                                 f -\n") ||
		list.Stderr != "sdtconvert: warning: in.o: the probe object zz_app___hit does not begin with sdt_; see --probe-object-prefix\n" {
		t.Errorf("list: %s%s", list.Stdout, list.Stderr)
	}
}

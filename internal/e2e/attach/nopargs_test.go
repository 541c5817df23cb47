package attach

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// nopFormats are how tracers are to show the arguments of each probe.
var nopFormats = []struct{ probe, format, gdb, bpftrace string }{
	{"none", "", "", ""},
	{"two", `%d %d`, "0 1", "(int32)arg0, arg1"},
	{"four", `%d %d %s %ld`, "0 1 2 3", "(int16)arg0, arg1, str(arg2), (int64)arg3"},
	{"six", `%d %ld %u %s %d %ld`, "0 1 2 3 4 5", "(int32)arg0, (int64)arg1, arg2, str(arg3), (int16)arg4, (int64)arg5"},
	{"generic", `%ld %s`, "0 1", "(int64)arg0, str(arg1)"},
	{"inlined", `%d`, "0", "(int32)arg0"},
}

// nopCommands has gdb print the arguments of each nop, and go on.
func nopCommands() string {
	var s strings.Builder
	for _, b := range nopFormats {
		fmt.Fprintf(&s, "break -probe-stap nops:%s\ncommands\nsilent\nprintf \"> nops:%s %s\\n\"", b.probe, b.probe, b.format)
		verbs := strings.Fields(b.format)
		for i, arg := range strings.Fields(b.gdb) {
			value := "$_probe_arg" + arg
			if verbs[i] == "%s" {
				value = "(char *)" + value
			}
			fmt.Fprintf(&s, ", %s", value)
		}
		s.WriteString("\ncontinue\nend\n")
	}
	return s.String()
}

// TestNopsUnderGDB compares the arguments that gdb reads with those of the program.
func TestNopsUnderGDB(t *testing.T) {
	tools.Need(t, "gdb")
	input := filepath.Join(t.TempDir(), "input")
	disk.Write(t, input, "\n\n\n")
	for _, c := range []compiler{gcc, oldClang, clang} {
		for _, flags := range []string{"-O2", "-O0", "-Os -fomit-frame-pointer"} {
			t.Run(c.cc.Name+flags, func(t *testing.T) {
				t.Parallel()
				p := compileNops(t, c, append(strings.Fields(flags), "-g")...)
				script := "break main\nrun <" + input + " >/dev/null\ndelete\n" + nopCommands() + "continue\n"
				expect.Equal(t, p.said(t, 3), underGDB(t, "gdb", script, p.nops(t)))
			})
		}
	}
}

// TestNopsUnderGDBRemotely is TestNopsUnderGDB with programs that are emulated: of the
// machines whose operands gdb knows in notes.
func TestNopsUnderGDBRemotely(t *testing.T) {
	all := product.New("machine", "compiler", "flags")
	for _, gcc := range []compiler{arm, arm64, i386, ppc64, ppc64le, s390x} {
		for _, c := range []compiler{gcc, {gcc.machine, toolchains.Clang}} {
			for _, flags := range []string{"-O2", "-O0"} {
				all.Add(c.machine.Name+"/"+c.cc.Name+flags, []string{c.machine.Name, c.cc.Name, flags}, func(t *testing.T) {
					t.Parallel()
					tools.Need(t, "gdb-multiarch", c.machine.QEMU)
					how := []string{flags, "-g"}
					if c.machine == toolchains.ARM { // of A32 it does not read registers that have names
						how = append(how, "-mthumb")
					}
					p := compileNops(t, c, how...)
					exe := p.image(t, "program", []string{"-static"}, append(p.convert(t), p.main)...)
					script := "target remote " + c.machine.WaitForGDB(t, exe, "\n\n\n") + "\n" + nopCommands() + "continue\n"
					expect.Equal(t, p.said(t, 3), underGDB(t, "gdb-multiarch", script, exe))
				})
			}
		}
	}
	all.Run(t)
}

// nops links the converted program the usual way.
func (p program) nops(t *testing.T) string {
	t.Helper()
	return p.image(t, "program", []string{"-pie"}, append(p.convert(t), p.main)...)
}

// TestNopsUnderBpftrace is TestNopsUnderGDB with bpftrace.
func TestNopsUnderBpftrace(t *testing.T) {
	for _, c := range []compiler{gcc, oldClang, clang} {
		for _, flags := range []string{"-O2", "-O0"} {
			t.Run(c.cc.Name+flags, func(t *testing.T) {
				t.Parallel()
				p := compileNops(t, c, append(strings.Fields(flags), "-g")...)
				exe := p.nops(t)
				tools.NeedUprobes(t)
				var script strings.Builder
				script.WriteString("BEGIN { printf(\"attached\\n\"); }\n")
				for _, b := range nopFormats {
					args := b.bpftrace
					if args != "" {
						args = ", " + args
					}
					fmt.Fprintf(&script, "usdt:%s:nops:%s { printf(\"> nops:%s %s\\n\"%s); }\n", exe, b.probe, b.probe, b.format, args)
				}
				const n = 10
				var got []string
				for _, line := range traceBy(t, script.String(), exe, n) {
					if call, ok := strings.CutPrefix(line, "> "); ok {
						got = append(got, call)
					}
				}
				// Each processor has a buffer of its own.
				want, got := slices.Sorted(slices.Values(p.said(t, n))), slices.Sorted(slices.Values(got))
				expect.Equal(t, want, got)
			})
		}
	}
}

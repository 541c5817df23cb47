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

// The only probes of a link may be in members of a thin archive.
func TestThinArchiveAlone(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "marked.c", []byte("#include <sdt.h>\nvoid second(int n) { DTRACE_PROBE1(app___second, int, n); }\n"))
		tools.Must(t, "gcc", "-O2", "-c", "-I"+tools.Root("include"), "-o", "marked.o", "marked.c")
		compile(t, "plain.c", "sub/second.c")
		for _, member := range []string{"marked.o", "sub/second.o"} {
			os.Remove("libthin.a")
			tools.Must(t, "ar", "rcsT", "libthin.a", member)
			for _, mode := range []string{"-shared", "-r"} {
				out, err := wrapped(l, "--", mode, "-o", "out", "--whole-archive", "plain.o", "libthin.a")
				expect.OK(t, err, "%s", out)
				listing := tools.Must(t, converter, "list", "out")
				expect.Contains(t, listing, "second", "%s of %s lists %s", mode, member, listing)
			}
		}
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

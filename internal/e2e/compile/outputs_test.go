package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// Assemblers, relocatable links and compilers of D name objects in other ways than gcc -c.
func TestOtherOutputs(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc", "as", "ld", "ldc2", "nm")
	b := newBuild(t)
	b.must("gcc", "-O2", "-S", "guard.c", "-o", "guard.s")
	b.must("gcc", "-O2", "-c", "probe.c", "-o", "part.o")
	b.write("d.d", `extern(C) void __dtrace_probe_app___go(int); extern(C) void fire() { __dtrace_probe_app___go(1); }`)
	for _, line := range []string{
		"as guard.s -o x.o", "as guard.s", "ld -r part.o -o x.o",
		"ldc2 -c -of=x.o d.d", "ldc2 -c -od=sub d.d",
	} {
		b.remove("x.o", "a.out", "sub/d.o")
		b.must(converter, append([]string{"cc", "--"}, strings.Fields(line)...)...)
		names, found := "", false
		for _, object := range []string{"x.o", "a.out", "sub/d.o"} {
			if b.exists(object) {
				found = true
				names += b.must("nm", object)
			}
		}
		if !found || strings.Contains(names, "__dtrace") || !strings.Contains(names, "sdt_app___go") {
			t.Errorf("%s: %s", line, names)
		}
	}
}

// Objects whose machine code the link generates stay as they are, with a warning unless the
// link is known to convert.
func TestObjectsForTheLink(t *testing.T) {
	t.Parallel()
	clang := toolchains.LLVM("clang")
	tools.Need(t, "gcc", clang)
	b := newBuild(t)
	wrappers := t.TempDir()
	expect.OK(t, os.Symlink(converter, filepath.Join(wrappers, "ld")))
	for _, c := range []struct {
		line string
		want string // "" for no warning
	}{
		{"gcc -flto -c guard.c", "guard.o: is GCC link-time optimisation code that holds probes, and left as it is; link it"},
		{clang + " -flto -c guard.c", "guard.o: is LLVM bitcode that holds probes, and left as it is; link it"},
		{"gcc -flto -ffat-lto-objects -c guard.c", "guard.o: its intermediate code for link-time optimisation stays unconverted"},
		{"gcc -flto -B" + wrappers + " -c guard.c", ""},
		{"gcc -flto -ffat-lto-objects -B " + wrappers + " -c guard.c", ""},
	} {
		out := b.must(converter, append([]string{"cc", "--"}, strings.Fields(c.line)...)...)
		if c.want == "" && out != "" || strings.Count(out, "\n") > 1 || !strings.Contains(out, c.want) {
			t.Errorf("%s: %s", c.line, out)
		}
	}
}

// With -v, each object has a line.
func TestVerbose(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc")
	b := newBuild(t)
	b.write("none.c", "int none;\n")
	for line, want := range map[string]string{
		"gcc -c guard.c":            "guard.o: .text+",
		"gcc -c none.c":             "sdtconvert: none.o: has nothing to convert\n",
		"gcc -S guard.c":            "sdtconvert: converts nothing: the command line names no object\n",
		"gcc -flto -c guard.c":      "link-time optimisation code",
		"gcc -c none.c -o x.o -###": "sdtconvert: converts nothing: the command line names no object\n",
		"gcc none.c -shared -o x.o": "sdtconvert: x.o: not a relocatable object, and left as it is\n",
		"true -c none.c":            "sdtconvert: none.o: not written by this compilation, and left as it is\n",
	} {
		expect.Contains(t, b.must(converter, append([]string{"cc", "-v", "--"}, strings.Fields(line)...)...), want, "%s", line)
	}
}

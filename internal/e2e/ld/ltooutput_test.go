package ld

import (
	"fmt"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// lld extracts hundreds of members for bitcode, and prints each: a pipe splits what it prints anywhere. Nothing of that is on
// standard output.
func TestManyExtractions(t *testing.T) {
	const members = 300
	l, clang := linker("lld"), toolchains.Clang.Name
	tools.Need(t, clang, "gcc", "ar", l.Path)
	enter(t, l.Path)
	program, assembly := "#include <sdt.h>\n", ""
	calls := "int main(int c, char **v) { DTRACE_PROBE1(app___main, int, c);"
	var objects []string
	for i := range members {
		name := fmt.Sprintf("a_function_with_a_long_name_%d", i)
		assembly = fmt.Sprintf(".globl %[1]s\n%[1]s: ret\n.section .note.GNU-stack,\"\",@progbits\n", name)
		program, calls = program+"int "+name+"(int);\n", calls+name+"(c);"
		disk.Write(t, name+".s", assembly)
		objects = append(objects, name)
	}
	disk.Write(t, "main.c", program+calls+" return 0; }\n")
	for i := range objects {
		objects[i] += ".s"
	}
	tools.Must(t, "gcc", append([]string{"-c"}, objects...)...)
	for i := range objects {
		objects[i] = strings.TrimSuffix(objects[i], "s") + "o"
	}
	tools.Must(t, "ar", append([]string{"rcs", "libmany.a"}, objects...)...)
	tools.Must(t, clang, "-O1", "-flto", "-I"+tools.Root("include"), "-c", "main.c")
	for range tools.Cases(t, 5) {
		out, err := tools.Try(clang, "--ld-path="+wrappers+"/ld.lld", "-flto", "-o", "program", "main.o", "libmany.a")
		expect.OK(t, err)
		expect.Equal(t, "", out, "what a link prints")
	}
	expect.Contains(t, tools.Must(t, converter, "list", "--names", "program"), "app:program:main:main")
}

// The thin link of distributed ThinLTO links nothing, and neither does a run for bitcode or assembly: what later runs make of these
// is converted then.
func TestLinksOfInputs(t *testing.T) {
	for _, c := range []struct{ clang, lld string }{{toolchains.OldClang.Name, "old-lld"}, {toolchains.Clang.Name, "lld"}} {
		l, clang := toolchains.AMD64.Linker(c.lld), c.clang
		tools.Need(t, clang, "ar", l.Path)
		enter(t, l.Path)
		disk.Write(t, "main.c", "#include <sdt.h>\nint more(int);\nint main(int c, char **v) { DTRACE_PROBE1(app___main, int, c); return more(c) != 1; }\n")
		disk.Write(t, "more.c", "#include <sdt.h>\nint more(int c) { DTRACE_PROBE1(app___more, int, c); return c; }\n")
		tools.Must(t, clang, "-O1", "-flto=thin", "-I"+tools.Root("include"), "-c", "main.c", "more.c")
		link := []string{"--ld-path=" + wrappers + "/ld.lld", "-flto=thin", "-o", "program"}
		tools.Must(t, clang, append(link, "-Wl,--thinlto-index-only=index", "main.o", "more.o")...)
		expect.Equal(t, "main.o\nmore.o\n", read(t, "index"))
		for _, name := range []string{"main", "more"} {
			tools.Must(t, clang, "-O1", "-c", "-x", "ir", name+".o", "-fthinlto-index="+name+".o.thinlto.bc", "-o", name+".native.o")
		}
		tools.Must(t, clang, append(link, "main.native.o", "more.native.o")...)
		tools.Must(t, "./program")
		listed := tools.Must(t, converter, "list", "--names", "program")
		expect.Contains(t, listed, ":main\n")
		expect.Contains(t, listed, ":more\n")
		tools.Must(t, "ar", "rcs", "libmore.a", "more.o")
		tools.Must(t, clang, append(link, "-Wl,-plugin-opt=thinlto-index-only=index", "main.o", "libmore.a")...)
	}
}

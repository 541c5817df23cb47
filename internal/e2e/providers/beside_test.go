package providers

import (
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// A provider's header brings SystemTap's macros, as that of SystemTap's own script does, before and behind sdt.h and
// SystemTap's header; and the macros of sdt.h stay its own.
func TestBesideSystemTap(t *testing.T) {
	b := newBuild(t)
	b.write(t, "pv.d", "provider pv { probe one(int n); };\n")
	b.Must(t, b.dtrace, "-h", "-s", "pv.d")
	const theirs, ours = "DTRACE_PROBE1(pv, three, n);", "DTRACE_PROBE1(pv___three, int, n);"
	for _, c := range []struct{ headers, three string }{
		{"pv.h", theirs}, {"pv.h sys/sdt.h", theirs}, {"sys/sdt.h pv.h", theirs},
		{"sdt.h pv.h", ours}, {"pv.h sdt.h", ours}, {"sdt.h pv.h sys/sdt.h", ours}, {"pv.h sdt.h sys/sdt.h", ours}, {"pv.h sys/sdt.h sdt.h", ours},
	} {
		source := "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
		for _, header := range strings.Fields(c.headers) {
			line := "#include <" + header + ">\n"
			if header != "pv.h" {
				line = "#ifdef __cplusplus\n}\n#endif\n" + line + "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
			}
			source += line
		}
		source += "#ifdef __cplusplus\n}\n#endif\nint main(int n, char **v) { (void)v; PV_ONE(n); STAP_PROBE1(pv, two, n); " + c.three + " return 0; }\n"
		b.write(t, "main.c", source)
		b.write(t, "main.cc", source)
		for _, compiler := range [][]string{
			toolchains.AMD64.CC(toolchains.GCC), toolchains.AMD64.CC(toolchains.Clang), toolchains.AMD64.CXX(toolchains.GCC), toolchains.AMD64.CXX(toolchains.Clang),
		} {
			tools.Need(t, compiler[0])
			file := map[bool]string{true: "main.cc", false: "main.c"}[strings.Contains(compiler[0], "++")]
			args := append(compiler[1:], "-O2", "-Wall", "-Wextra", "-Werror", "-I"+tools.Root("include"), "-I.", "-c", file, "-o", "main.o")
			b.Must(t, compiler[0], args...)
			b.Must(t, converter, "convert", "main.o")
			names := tools.Output(t, "readelf", "-n", filepath.Join(b.Directory, "main.o"))
			for _, name := range []string{"one", "two", "three"} {
				expect.Equal(t, 1, strings.Count(names, "Name: "+name+"\n"), "%s, %s: the probe %s in\n%s", c.headers, compiler, name, names)
			}
		}
	}
}

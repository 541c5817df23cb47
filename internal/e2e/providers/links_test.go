package providers

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// mode is a way to compile and link.
type mode struct {
	name  string
	flags []string
	clang bool // for clang with lld
	gcc   bool // for gcc with a linker that has its plugin
}

var modes = []mode{
	{"plain", nil, true, true},
	{"static", []string{"-static"}, true, true},
	{"gc", []string{"-ffunction-sections", "-Wl,--gc-sections"}, true, true},
	{"lto", []string{"-flto"}, true, true},
	{"thin", []string{"-flto=thin"}, true, false},
}

// program links the program with a header in a directory, and perhaps more files.
func program(t *testing.T, directory string, c toolchains.Compiler, l toolchains.Linker, m mode, more ...string) string {
	t.Helper()
	tools.Need(t, c.Name, l.Path)
	driver, out := tools.Driver(t, l.Path), filepath.Join(t.TempDir(), "prog")
	args := []string{"-O2", "-I" + directory, source(t, "shop.c"), "-o", out, "-B" + driver}
	if c.Clang {
		args = append(args, "--ld-path="+driver+"ld")
	}
	tools.Must(t, c.Name, slices.Concat(args, m.flags, more)...)
	return out
}

// However it is linked, with and without the object, each note of the program names the one
// semaphore of its probe.
func TestLinks(t *testing.T) {
	tools.Need(t, "readelf", "nm")
	all := product.New("compiler", "linker", "mode", "object")
	directory := directoryWith(t)
	object := filepath.Join(directory, "shop.o")
	tools.Must(t, converter, "provider", "-G", "-s", source(t, "shop.d"), "-o", object)
	for _, l := range toolchains.AMD64.Linkers() {
		for _, m := range modes {
			for _, c := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
				if c.Clang != (l.Family == "lld") || c.Clang && !m.clang || !c.Clang && !m.gcc {
					continue
				}
				if strings.Contains(strings.Join(m.flags, " "), "-flto") && (!c.Clang && !l.Can(toolchains.GCCPlugin) || l.Name == "old-lld") {
					continue // clang 19's code is not for lld 14
				}
				for _, more := range [][]string{nil, {object}} {
					add := all.Add
					if m.name == "plain" && l.Name == "bfd" && more == nil {
						add = all.Always
					}
					values := []string{c.Name, l.Name, m.name, map[bool]string{true: "object", false: "alone"}[more != nil]}
					add(strings.Join(values, "/"), values, func(t *testing.T) {
						t.Parallel()
						exe := program(t, directory, c, l, m, more...)
						checkProgram(t, exe, 8)
						expect.Equal(t, "3 rounds\n", tools.Output(t, exe), "untraced it prints")
					})
				}
			}
		}
	}
	all.Run(t)
}

var semaphoreLine = regexp.MustCompile(`Semaphore: 0x([0-9a-f]+)`)

// checkProgram looks at what tracers and linkers read of a program.
func checkProgram(t *testing.T, exe string, sites int) {
	t.Helper()
	notes := tools.Output(t, "readelf", "-nW", exe)
	expect.Equal(t, sites, strings.Count(notes, "Provider: shop"))
	symbols := map[string]string{} // by address
	for line := range strings.Lines(tools.Output(t, "nm", exe)) {
		if f := strings.Fields(line); len(f) == 3 && strings.HasSuffix(f[2], "_semaphore") {
			symbols[f[0]] = f[2]
		}
	}
	names := regexp.MustCompile(`Name: (\w+)`).FindAllStringSubmatch(notes, -1)
	for i, m := range semaphoreLine.FindAllStringSubmatch(notes, -1) {
		expect.Equal(t, "shop_"+names[i][1]+"_semaphore", symbols[m[1]], "the semaphore at %s", m[1])
	}
	segments := tools.Output(t, "readelf", "-lW", exe)
	if !regexp.MustCompile(`GNU_STACK.* RW `).MatchString(segments) {
		t.Errorf("the stack is executable: %s", segments)
	}
	sections := tools.Output(t, "readelf", "-SW", exe)
	if m := regexp.MustCompile(`(?m) \.probes .* (\d+)$`).FindAllStringSubmatch(sections, -1); len(m) != 1 || m[0][1] != "4096" {
		t.Errorf("the semaphores have no page of their own: %q", m)
	}
}

// An object for each machine, from what its compiler makes, in a program that runs.
func TestForeign(t *testing.T) {
	all := product.New("machine", "compiler")
	for _, m := range toolchains.Machines {
		for _, c := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
			all.Add(m.Name+"/"+c.Name, []string{m.Name, c.Name}, func(t *testing.T) {
				t.Parallel()
				m.Need(t)
				directory := directoryWith(t)
				cc := m.CC(c)
				tools.Need(t, cc[0])
				object, made, exe := filepath.Join(directory, "main.o"), filepath.Join(directory, "shop.o"), filepath.Join(directory, "main")
				tools.Must(t, cc[0], slices.Concat(cc[1:], []string{"-O2", "-I" + directory, "-c", source(t, "shop.c"), "-o", object})...)
				before := tools.Output(t, "sha256sum", object)
				tools.Must(t, converter, "provider", "-G", "-s", source(t, "shop.d"), "-o", made, object)
				expect.Equal(t, before, tools.Output(t, "sha256sum", object), "the object has changed")
				tools.Must(t, cc[0], slices.Concat(cc[1:], m.LinkFlags, []string{object, made, "-o", exe})...)
				checkProgram(t, exe, 8)
				checkList(t, exe)
				checkAnchored(t, object, exe)
				run := m.Command(exe)
				expect.Equal(t, "3 rounds\n", tools.Output(t, run[0], run[1:]...), "it prints")
			})
		}
	}
	all.Run(t)
}

// checkList looks at the listing: each probe in the function of its sites, once.
func checkList(t *testing.T, exe string) {
	t.Helper()
	want := map[string]int{"order-placed": 5, "sent": 1, "empty": 1, "wide": 1}
	for _, p := range listjson.Probes(t, tools.Output(t, converter, "list", "--json", exe)) {
		if p.Provider != "shop" || p.Function != "work" || len(p.Sites) != want[p.Name] {
			t.Errorf("listed: %+v", p)
		}
		delete(want, p.Name)
		for _, s := range p.Sites {
			if s.State != "disabled" || s.Semaphore == nil || s.Semaphore.Symbol != "shop_"+strings.ReplaceAll(p.Name, "-", "__")+"_semaphore" {
				t.Errorf("%s: %+v", p.Name, s)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// checkAnchored asks the other commands about the sites of an object, and of what was linked
// of it.
func checkAnchored(t *testing.T, object, exe string) {
	t.Helper()
	if out := tools.Output(t, converter, "inspect", object); strings.Count(out, "      note    shop, ") != 8 || !strings.Contains(out, "shop, sent, semaphore shop_sent_semaphore\n") {
		t.Errorf("inspected: %s", out)
	}
	for _, file := range []string{object, exe} {
		names := write(t, t.TempDir(), "names.txt", tools.Output(t, converter, "list", "--names", file))
		tools.Must(t, converter, "check", "--require", "@"+names, "--require", "shop::work:sent", "--require", "order-placed", file)
	}
}

// Objects are for the machine that something tells: a compiler, a flag, a name, an object.
func TestMachines(t *testing.T) {
	tools.Need(t, "readelf")
	directory := t.TempDir()
	write(t, directory, "p.d", "provider p { probe a(); };")
	expect.OK(t, os.Symlink(converter, filepath.Join(directory, "aarch64-linux-gnu-dtrace")))
	for _, c := range []struct {
		env     []string
		command []string
		want    string
	}{
		{nil, []string{converter, "provider", "-32"}, "Intel 80386"},
		{nil, []string{converter, "provider", "--target", "riscv64-linux-gnu"}, "RISC-V"},
		{nil, []string{"./aarch64-linux-gnu-dtrace"}, "AArch64"},
		{[]string{"CC=riscv64-linux-gnu-gcc -g"}, []string{converter, "provider"}, "RISC-V"},
		{[]string{"CC=gcc", "CFLAGS=-O2 -m32"}, []string{converter, "provider"}, "Intel 80386"},
		{[]string{"CC=gcc"}, []string{converter, "provider"}, "Advanced Micro Devices X86-64"},
		{[]string{"CC=no-such-compiler"}, []string{converter, "provider", "--target=s390x-ibm-linux-gnu"}, "IBM S/390"},
	} {
		if len(c.env) > 0 && !strings.Contains(c.env[0], "no-such") {
			tools.Need(t, strings.Fields(strings.TrimPrefix(c.env[0], "CC="))[0])
		}
		tools.Command{Directory: directory, Env: c.env}.Must(t, c.command[0], append(c.command[1:], "-G", "-s", "p.d")...)
		header := tools.Output(t, "readelf", "-hW", filepath.Join(directory, "p.o"))
		expect.Contains(t, header, c.want+"\n", "%q %q", c.env, c.command)
	}
}

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

// GNU ld -r joins converted objects with those that have only notes of a header, and an object that has both kinds. Notes of functions that a
// link drops go with them.
func TestMergedNotes(t *testing.T) {
	b := newBuild(t)
	b.write(t, "pv.d", "provider pv { probe one(int n); };\n")
	b.Must(t, b.dtrace, "-h", "-s", "pv.d")
	const own = "#include <sdt.h>\nint %(int i); int %(int i) { DTRACE_PROBE1(own___%, int, i); return i; }\n"
	b.write(t, "own.c", strings.ReplaceAll(own, "%", "live")+strings.ReplaceAll(own, "%", "dead"))
	b.write(t, "header.c", "#include \"pv.h\"\nint header(int i); int header(int i) { PV_ONE(i); return i; }\n")
	b.write(t, "both.c", "#include \"own.c\"\n#include \"header.c\"\n")
	b.write(t, "main.c", "int live(int); int header(int); int main(void) { return live(0) + header(0); }\n")
	include := "-I" + tools.Root("include")
	for _, name := range []string{"own", "header", "both", "main"} {
		b.Must(t, "gcc", "-O2", "-ffunction-sections", include, "-c", name+".c")
	}
	b.Must(t, converter, "ld", "--linker", "ld.bfd", "--", "-r", "own.o", "header.o", "-o", "merged.o")
	b.Must(t, converter, "both.o")
	b.Must(t, "ld.bfd", "-r", "both.o", "-o", "again.o")
	for _, object := range []string{"merged.o", "both.o", "again.o"} {
		for _, linker := range []string{"ld.bfd", "ld.lld-19"} {
			tools.Need(t, linker)
			directory := filepath.Join(t.TempDir(), "bin")
			expect.OK(t, tools.LinkAs(directory, expect.Value(exec.LookPath(linker))(t), "ld"))
			b.Must(t, "gcc", "-B"+directory, "-Wl,--gc-sections", "main.o", object, "-o", "program")
			notes := tools.Output(t, "readelf", "-n", filepath.Join(b.Directory, "program"))
			wanted := map[string]int{"live": 1, "one": 1}
			if object == "both.o" {
				wanted["dead"] = 0 // ld -r has made one section of the records of all functions
			}
			for name, want := range wanted {
				expect.Equal(t, want, strings.Count(notes, "Name: "+name+"\n"), "%s, %s: the probe %s in\n%s", object, linker, name, notes)
			}
		}
	}
	b.Must(t, converter, "--stapsdt", "merged.o") // which is known to have notes
}

package header

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// kernelFlags are those that FreeBSD's kernel is compiled with (sys/conf/kern.mk).
var kernelFlags = strings.Fields(`-O2 -ffreestanding -fwrapv -fno-strict-aliasing -std=iso9899:1999
	-nostdinc -D_KERNEL -Werror -Wall -Wredundant-decls -Wnested-externs -Wstrict-prototypes
	-Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wundef -Wno-pointer-sign
	-Wmissing-include-dirs -Wno-unknown-pragmas`)

// FreeBSD's header with the directory for -I before it: each tracepoint of a source that
// was not changed calls a stub, with the kernel's flags and no warning. What the kernel
// marks by itself, since 15, stays unless SDT_CALLS is given.
func TestFreeBSDKernelHeader(t *testing.T) {
	stubs := strings.Fields(`isenabled_net___none isenabled_net_mod_func_one probe_net___five probe_net___none
		probe_net___seven probe_net___two__words probe_net_mod_func_one probe_sdt___inside`)
	for _, compiler := range []string{"gcc", toolchains.LLVM("clang"), "clang-" + toolchains.Debian.OldLLVM} {
		t.Run(compiler, func(t *testing.T) {
			tools.Need(t, compiler, "nm")
			for _, c := range []struct {
				version, flags string
				want           []string
			}{
				{"12", "-DKDTRACE_HOOKS", stubs},
				{"12", "", nil},
				{"15", "-DKDTRACE_HOOKS", nil},
				{"15", "-DKDTRACE_HOOKS -DSDT_CALLS", stubs},
				{"15", "", nil},
				{"12", "-DKDTRACE_HOOKS -D__FreeBSD__=12 -include sdt.h", stubs}, // which defers to it
			} {
				got := kernelStubs(t, compiler, c.version, strings.Fields(c.flags))
				if !slices.Equal(got, c.want) {
					t.Errorf("%s %s: calls %q, want %q", c.version, c.flags, got, c.want)
				}
			}
		})
	}
}

// kernelStubs compiles the source with a generation of the header, and returns the stubs
// that it refers to. Its probe objects are the kernel's.
func kernelStubs(t *testing.T, compiler, version string, flags []string) []string {
	t.Helper()
	dir := expect.Value(filepath.Abs("testdata/freebsd"))(t)
	include := tools.Root("include")
	object := filepath.Join(t.TempDir(), "kernel.o")
	args := append(slices.Clone(kernelFlags), flags...)
	args = append(args, "-I"+include, "-I"+filepath.Join(include, "freebsd"), "-I"+filepath.Join(dir, version),
		"-c", "-o", object, filepath.Join(dir, "kernel.c"))
	tools.Must(t, compiler, args...)
	symbols := tools.Output(t, "nm", object)
	var stubs []string
	for _, m := range regexp.MustCompile(`(?m) U __dtrace_(\w+)$`).FindAllStringSubmatch(symbols, -1) {
		stubs = append(stubs, m[1])
	}
	if hooks := slices.Contains(flags, "-DKDTRACE_HOOKS"); strings.Contains(symbols, " D sdt_net___none\n") != hooks {
		t.Errorf("%s %v: the probe is defined: want %v\n%s", version, flags, hooks, symbols)
	}
	return stubs
}

// kernelTree returns the directories of a kernel's sources, and of where it was configured
// and its generated headers are. Without them, it skips the test.
func kernelTree(t *testing.T) (sysdir, build string) {
	t.Helper()
	sysdir, build = os.Getenv("SYSDIR"), os.Getenv("KERNBUILDDIR")
	if sysdir == "" || build == "" {
		t.Skip("SYSDIR and KERNBUILDDIR name no FreeBSD sources")
	}
	return sysdir, build
}

// The same with the sources of a kernel, whose own headers include sys/sdt.h.
func TestFreeBSDTree(t *testing.T) {
	sysdir, build := kernelTree(t)
	include := tools.Root("include")
	dir := t.TempDir()
	source := filepath.Join(dir, "tree.c")
	text := "#include <sys/param.h>\n#include <sys/systm.h>\n"
	for _, name := range []string{"kernel", "lock", "mutex", "mbuf", "rwlock", "sx"} {
		text += fmt.Sprintf("#include <sys/%s.h>\n", name)
	}
	text += "#include <sdt.h>\nSDT_PROVIDER_DEFINE(net);\nSDT_PROBE_DEFINE1_XLATE(net, , , one, \"int\", \"long\");\n" +
		"int fire(int);\nint fire(int n) { SDT_PROBE1(net, , , one, n); DTRACE_PROBE2(two, int, n, int, n); return (n); }\n"
	disk.Write(t, source, text)
	for _, compiler := range []string{"gcc", toolchains.LLVM("clang")} {
		tools.Need(t, compiler)
		object := filepath.Join(dir, "tree.o")
		args := append(slices.Clone(kernelFlags), "-fno-pic", "-mcmodel=kernel", "-mno-red-zone", "-mno-sse", "-msoft-float",
			"-include", "opt_global.h", "-I"+include, "-I"+filepath.Join(include, "freebsd"), "-I"+build, "-I"+sysdir,
			"-I"+filepath.Join(sysdir, "contrib/ck/include"), "-U__linux__", "-Ulinux", "-DSDT_CALLS", "-c", "-o", object, source)
		if compiler == "gcc" {
			args = append(args, "-D__FreeBSD__=14", "-D__printf__=__printf__")
		} else {
			args = append(args, "--target=x86_64-unknown-freebsd14", "-D__printf__=__freebsd_kprintf__")
		}
		tools.Must(t, compiler, args...)
		if symbols := tools.Output(t, "nm", object); !strings.Contains(symbols, "U __dtrace_probe_net___one") || !strings.Contains(symbols, "U __dtrace_probe_sdt___two") {
			t.Errorf("%s: no stub is called\n%s", compiler, symbols)
		}
	}
}

// The records that FreeBSD 15 makes of its own tracepoints are listed as ours are, with
// the function of each site: those of objects, of modules and of kernels.
func TestFreeBSDTracepoints(t *testing.T) {
	dir := expect.Value(filepath.Abs("testdata/freebsd"))(t)
	// A function that the definition names stays.
	const want = "net:one:func net:five:fire net:none:fire net:seven:fire net:two-words:fire sdt:inside:fire"
	for _, compiler := range []string{"gcc", toolchains.LLVM("clang")} {
		tools.Need(t, compiler, "ld")
		object := filepath.Join(t.TempDir(), "kernel.o")
		image := strings.TrimSuffix(object, ".o")
		args := append(slices.Clone(kernelFlags), "-DKDTRACE_HOOKS", "-fno-pic", "-mcmodel=kernel", "-I"+filepath.Join(dir, "15"), "-c", "-o", object, filepath.Join(dir, "kernel.c"), "-include", filepath.Join(dir, "enabled.h"))
		tools.Must(t, compiler, args...)
		tools.Must(t, "ld", "-r", "-o", image+".ko", object)
		tools.Must(t, "ld", "-Ttext=0xffffffff80200000", "--defsym=sdt_probe_func=0", "--defsym=sdt_provider_sdt=0", "-e", "fire", "-o", image, object)
		for _, file := range []string{object, image + ".ko", image} {
			if got := listedProbes(t, file); !sameWords(got, want) {
				t.Errorf("%s %s: lists %s, want %s", compiler, filepath.Base(file), got, want)
			}
		}
		if out, err := tools.Try(converter, "check", "--allow=undefined-probe", "--allow=unresolved-probe", image+".ko"); err != nil {
			t.Errorf("%s: check: %v\n%s", compiler, err, out)
		}
	}
}

// Calls of stubs beside FreeBSD 15's own tracepoints are converted, and those stay as
// they are.
func TestFreeBSDTracepointsBesideCalls(t *testing.T) {
	tools.Need(t, "gcc", "ld", "cmp")
	source := expect.Value(filepath.Abs("testdata/freebsd/kernel.c"))(t)
	dir := t.TempDir()
	marked, calls, both := filepath.Join(dir, "marked.o"), filepath.Join(dir, "calls.o"), filepath.Join(dir, "both.o")
	tools.Must(t, "gcc", append(slices.Clone(kernelFlags), "-DKDTRACE_HOOKS", "-fno-pic", "-mcmodel=kernel",
		"-I"+filepath.Join(filepath.Dir(source), "15"), "-include", filepath.Join(filepath.Dir(source), "enabled.h"), "-c", "-o", marked, source)...)
	text := "void __dtrace_probe_net___none(void);\nvoid again(void);\nvoid again(void) { __dtrace_probe_net___none(); again(); }\n"
	disk.Write(t, filepath.Join(dir, "calls.c"), text)
	tools.Must(t, "gcc", "-O1", "-fno-pic", "-mcmodel=kernel", "-c", "-o", calls, filepath.Join(dir, "calls.c"))

	tools.Must(t, converter, "--layout=freebsd", "-o", both, marked)
	tools.Must(t, "cmp", marked, both)

	want := listedProbes(t, marked) + " net:none:again"
	tools.Must(t, "ld", "-r", "-o", both, marked, calls)
	tools.Must(t, converter, "--layout=freebsd", both)
	if got := listedProbes(t, both); !sameWords(got, want) {
		t.Errorf("lists %s, want %s", got, want)
	}
}

// listedProbes are provider, name and function of what list prints.
func listedProbes(t *testing.T, file string) string {
	t.Helper()
	var all []string
	for _, line := range strings.Split(tools.Must(t, converter, "list", file), "\n")[1:] {
		if f := strings.Fields(line); len(f) == 5 {
			all = append(all, f[1]+":"+f[4]+":"+f[3])
		}
	}
	return strings.Join(all, " ")
}

func sameWords(a, b string) bool {
	return slices.Equal(slices.Sorted(slices.Values(strings.Fields(a))), slices.Sorted(slices.Values(strings.Fields(b))))
}

var providerSources = []string{"sdts.c", "sdts_points.c", "sdts_sites.c"}

// fbtLeavesOut reports whether fbt puts no breakpoint into a function of the provider, even
// if DTrace is linked into the kernel.
func fbtLeavesOut(function string) bool {
	return strings.HasPrefix(function, "dtrace_") && !strings.HasPrefix(function, "dtrace_safe_")
}

// A breakpoint in the provider's handler of breakpoints would call the handler again. So
// fbt has to leave out each function that the handler calls, and those that DTrace calls
// while a probe fires.
func TestFreeBSDProviderHandler(t *testing.T) {
	// Macros of the kernel, and functions that its headers always inline.
	inlined := strings.Fields("SLIST_FOREACH __builtin_frame_address __compiler_membar atomic_add_int intr_disable intr_restore memcpy nitems")
	calls, macros := map[string][]string{}, map[string]bool{}
	var handlers []string
	for _, name := range append([]string{"sdts.h"}, providerSources...) {
		text := string(expect.Value(os.ReadFile(tools.Root("examples/freebsd-provider/" + name)))(t))
		text = regexp.MustCompile(`(?s)/\*.*?\*/|"(\\.|[^"\\\n])*"`).ReplaceAllString(text, "")
		// A definition begins at the start of a line. Those of several machines count together.
		for _, m := range regexp.MustCompile(`(?ms)^(\w+)\([^{};]*\)\n\{\n(.*?)^\}`).FindAllStringSubmatch(text, -1) {
			calls[m[1]] = append(calls[m[1]], called(m[2])...)
		}
		for _, m := range regexp.MustCompile(`(?m)^#define\s+(\w+)\([^)]*\)((?:.*\\\n)*.*)`).FindAllStringSubmatch(text, -1) {
			macros[m[1]] = true
			calls[m[1]] = append(calls[m[1]], called(m[2])...)
		}
		for _, m := range regexp.MustCompile(`(?:dtrace_invop_add\(|\.dtps_getargval\s*=\s*|sdt_probe_func = )(\w+)`).FindAllStringSubmatch(text, -1) {
			handlers = append(handlers, m[1])
		}
	}
	if want := strings.Fields("dtrace_sdts_getargval dtrace_sdts_invop dtrace_sdts_point_hit sdt_probe_stub"); !sameWords(strings.Join(handlers, " "), strings.Join(want, " ")) {
		t.Fatalf("handlers are %v, want %v", handlers, want)
	}
	handlers = slices.DeleteFunc(handlers, func(name string) bool { return name == "sdt_probe_stub" }) // the kernel's own
	checkHandler(t, calls, handlers, func(function string) bool { return macros[function] || slices.Contains(inlined, function) })
}

// checkHandler checks that fbt leaves out all that the handlers reach, except for what is
// no function of its own.
func checkHandler(t *testing.T, calls map[string][]string, handlers []string, except func(string) bool) {
	t.Helper()
	paths := reachable(calls, handlers)
	if paths["dtrace_probe"] == "" || paths["dtrace_invop"] == "" {
		t.Errorf("no path to dtrace_probe and dtrace_invop: %v", paths)
	}
	for function, path := range paths {
		if !fbtLeavesOut(function) && !except(function) {
			t.Errorf("%s: fbt may put a breakpoint into %s", path, function)
		}
	}
}

// called returns what a text calls: functions and macros with arguments.
func called(text string) []string {
	keywords := strings.Fields("defined for if return sizeof switch while")
	var names []string
	for _, m := range regexp.MustCompile(`\b([A-Za-z_]\w*)\s*\(`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(keywords, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// reachable returns the functions that others reach by calls, these included, each with a
// path to it.
func reachable(calls map[string][]string, from []string) map[string]string {
	paths := map[string]string{}
	for _, name := range from {
		paths[name] = name
	}
	for queue := slices.Clone(from); len(queue) > 0; queue = queue[1:] {
		for _, name := range calls[queue[0]] {
			if _, known := paths[name]; !known {
				paths[name] = paths[queue[0]] + " > " + name
				queue = append(queue, name)
			}
		}
	}
	return paths
}

// The provider compiles with a kernel's sources without a warning, and fbt leaves out all
// that its handler calls in the compiled code too.
func TestFreeBSDProvider(t *testing.T) {
	sysdir, build := kernelTree(t)
	compiler := toolchains.LLVM("clang")
	tools.Need(t, compiler)
	args := append(slices.Clone(kernelFlags), "--target=x86_64-unknown-freebsd14", "-D__printf__=__freebsd_kprintf__", "-DKLD_MODULE",
		"-fno-pic", "-mcmodel=kernel", "-mno-red-zone", "-mno-sse", "-msoft-float", "-include", "opt_global.h",
		"-include", filepath.Join(sysdir, "cddl/compat/opensolaris/sys/debug_compat.h"), "-I"+tools.Root("include"), "-I"+build)
	for _, dir := range []string{"cddl/compat/opensolaris", "cddl/contrib/opensolaris/uts/common", "", "contrib/ck/include"} {
		args = append(args, "-I"+filepath.Join(sysdir, dir))
	}
	for _, inline := range []string{"-finline-functions", "-finline-hint-functions"} {
		calls := map[string][]string{}
		for _, source := range providerSources {
			object := filepath.Join(t.TempDir(), source+".o")
			tools.Must(t, compiler, append(args, inline, "-ffunction-sections", "-c", "-o", object, tools.Root("examples/freebsd-provider/"+source))...)
			addCompiledCalls(t, object, calls)
		}
		checkHandler(t, calls, []string{"dtrace_sdts_invop", "dtrace_sdts_getargval"}, func(string) bool { return false })
	}
}

// addCompiledCalls adds what each function of an object refers to by a relocation of a
// call or a jump. Each function has a section of its own, so all of its calls have one.
func addCompiledCalls(t *testing.T, object string, calls map[string][]string) {
	t.Helper()
	file := expect.Value(elf.Open(object))(t)
	defer file.Close()
	symbols := expect.Value(file.Symbols())(t)
	for _, section := range file.Sections {
		caller, found := strings.CutPrefix(section.Name, ".rela.text.")
		if !found {
			continue
		}
		data := expect.Value(section.Data())(t)
		for ; len(data) > 0; data = data[24:] {
			info := file.ByteOrder.Uint64(data[8:])
			if elf.R_X86_64(elf.R_TYPE64(info)) != elf.R_X86_64_PLT32 {
				continue
			}
			symbol := symbols[elf.R_SYM64(info)-1]
			name := symbol.Name
			if elf.ST_TYPE(symbol.Info) == elf.STT_SECTION {
				name = strings.TrimPrefix(file.Sections[symbol.Section].Name, ".text.")
			}
			calls[caller] = append(calls[caller], name)
		}
	}
}

package header

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

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

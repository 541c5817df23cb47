package states

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// randomProgram writes functions of all kinds, with probe calls, tail calls and is-enabled
// tests, into two files.
func randomProgram(r *rand.Rand) [2]string {
	const probes = 5
	var files [2]string
	for i := range files {
		var s strings.Builder
		for p := range probes {
			fmt.Fprintf(&s, "void __dtrace_probe_app___p%d(int); int __dtrace_isenabled_app___p%d(void);\n", p, p)
		}
		fmt.Fprintln(&s, "static volatile int sum;")
		var calls strings.Builder
		for j := range 8 {
			name, p := fmt.Sprintf("f%d_%d%s", i, j, strings.Repeat("_long", r.IntN(2)*r.IntN(60))), r.IntN(probes)
			static := ""
			if r.IntN(2) == 0 {
				static = "static "
			}
			body := []string{
				"__dtrace_probe_app___p#(x); sum += x; return sum;",
				"if (__dtrace_isenabled_app___p#()) { __dtrace_probe_app___p#(x); sum++; } return x;",
				"return __dtrace_isenabled_app___p#();",
				"if (x > 5) return __dtrace_isenabled_app___p#(); return sum += x;",
				"sum -= x; return sum * x;",
			}[r.IntN(5)]
			body = strings.ReplaceAll(body, "#", strconv.Itoa(p))
			fmt.Fprintf(&s, "__attribute__((noinline)) %sint %s(int x) { %s }\n", static, name, body)
			fmt.Fprintf(&s, "__attribute__((noinline)) %svoid %st(int x) { sum += x; if (x > %d) __dtrace_probe_app___p%d(x); }\n", static, name, r.IntN(3)-1, p)
			fmt.Fprintf(&calls, "sum += %s(x); %st(x); ", name, name)
		}
		fmt.Fprintf(&s, "int all%d(int x) { %s return sum; }\n", i, calls.String())
		files[i] = s.String()
	}
	files[1] += "int all0(int);\nint main(int argc, char **argv) { return all0(argc) + all1(argc) == 77; }\n"
	return files
}

// site is what list says of one.
type site struct {
	listjson.Site
	provider, name string
}

// sitesOf returns what list says of a file.
func (f directory) sitesOf(file string) map[string]site {
	f.Helper()
	got := f.run("list", "--json", file)
	all := map[string]site{}
	for _, p := range listjson.Probes(f, got.Stdout) {
		for _, s := range p.Sites {
			all[s.Address] = site{s, p.Provider, p.Name}
		}
	}
	return all
}

// strippings make another file of an image, out of in: commands in the directory, of which the
// first word is a tool of the machine, or a path.
var strippings = map[string][]string{
	"strip":       {"strip -o out in"},
	"strip-debug": {"strip --strip-debug -o out in"},
	"unneeded":    {"strip --strip-unneeded -o out in"},
	"no locals":   {"strip -x -o out in"},
	"eu-strip":    {"/usr/bin/eu-strip -o out in"},
	"llvm-strip":  {"LLVM/llvm-strip -o out in"},
	"no lines":    {"objcopy -R .debug_line in out"},
	"no entries":  {"objcopy -R .debug_info -R .debug_abbrev in out"},
	"no notes":    {"objcopy -R .note.stapsdt in out"},
	"no symbols":  {"LLVM/llvm-objcopy --strip-all in out"},
	"compressed":  {"objcopy --compress-debug-sections=zlib in out"},
	"zstd":        {"LLVM/llvm-objcopy --compress-debug-sections=zstd in out"},
	"gnu":         {"objcopy --compress-debug-sections=zlib-gnu in out"},
	"split":       {"objcopy --only-keep-debug in out.debug", "strip -o out in", "objcopy --add-gnu-debuglink=out.debug out"},
	"eu-split":    {"/usr/bin/eu-strip -f out.debug -o out in"},
	"no sections": {"LLVM/llvm-strip --strip-sections -o out in"},
}

// What list says of an image that was stripped is poorer than what it says of the whole, and
// never another. With a separate debug file the functions and sources are the same.
func TestStrippedImages(t *testing.T) {
	for i, m := range toolchains.Machines {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, append(m.Tools("gcc", "strip", "objcopy"), toolchains.LLVM("llvm-strip"), toolchains.LLVM("llvm-objcopy"), "eu-strip")...)
			compared, named := 0, 0
			for seed := range tools.Cases(t, 1) {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
				f := newDirectory(t)
				what := fmt.Sprintf("seed %d: %s", seed, f.linkRandom(m, r))
				whole := f.sitesOf("in")
				symbols := tools.Output(t, "nm", filepath.Join(f.path, "in")) + "\n"
				hasFunctions := strings.Contains(tools.Output(t, "readelf", "-SW", filepath.Join(f.path, "in")), " .sdt_functions ")
				found := f.rulesOf("in")
				if len(whole) < 10 {
					t.Fatalf("%s: %d sites", what, len(whole))
				}
				for name, commands := range strippings {
					for _, command := range commands {
						words := strings.Fields(command)
						if tool, ok := strings.CutPrefix(words[0], "LLVM"); ok {
							words[0] = filepath.Join(toolchains.LLVMPrograms(), tool)
						} else if !filepath.IsAbs(words[0]) {
							words[0] = m.Tool(words[0])
						}
						f.must(words...)
					}
					got := f.sitesOf("out")
					if hasFunctions && !(strings.Contains(what, "--no-records") && !f.hasNotes("out")) { // which alone have the names then
						f.compareFunctions(what+", "+name, symbols, whole, got)
						named += len(got)
					}
					for address, s := range got {
						f.compare(fmt.Sprintf("%s, %s: %s", what, name, address), symbols, whole[address], s)
						compared++
						if want := whole[address]; strings.HasSuffix(name, "split") && (s.Function != want.Function || s.Source != want.Source) {
							t.Errorf("%s, %s: %s: got %s, %s, want %s, %s", what, name, address, s.Function, s.Source, want.Function, want.Source)
						}
					}
					notesGone := name == "no notes" || strings.Contains(what, "--no-records") && !f.hasNotes("out")
					if len(got) < len(whole) && name != "no sections" && !notesGone {
						t.Errorf("%s, %s: %d sites of %d", what, name, len(got), len(whole))
					}
					f.checkFindings(what+", "+name, found)
					f.checkResolve(what+", "+name, got)
					f.must("rm", "-f", "out", "out.debug")
				}
			}
			t.Logf("%d sites were compared, and the functions of %d", compared, named)
		})
	}
}

// compareFunctions reports each site of an image with tables of functions whose function is not the one of the whole
// image, where symbols name it.
func (f directory) compareFunctions(what, symbols string, whole, got map[string]site) {
	f.Helper()
	for address, want := range whole {
		s := got[address]
		if s.FunctionOffset != want.FunctionOffset || (s.Function != want.Function || s.Symbol != want.Symbol) && !isAlias(s, symbols) {
			f.Errorf("%s: %s: got %s (%s)+%#x, want %s (%s)+%#x", what, address, s.Function, s.Symbol, s.FunctionOffset, want.Function, want.Symbol, want.FunctionOffset)
		}
	}
}

// isAlias reports whether the function of a site is one of the symbols of the whole image, as nm lists them: gcc gives functions of equal code one
// place (-fipa-icf). Which of its names is recorded is the object's choice.
func isAlias(s site, symbols string) bool {
	name := cmp.Or(s.Symbol, s.Function)
	return name != "" && strings.Contains(symbols, " "+name+"\n")
}

// linkRandom makes a program, and says how.
func (f directory) linkRandom(m *toolchains.Machine, r *rand.Rand) string {
	f.Helper()
	one := func(words ...string) string { return words[r.IntN(len(words))] }
	linkers := m.Newest()
	l := linkers[r.IntN(len(linkers))]
	tools.Need(f.T, l.Path)
	compile := []string{one("-O0", "-O1", "-O2", "-Os", "-O3"), one("-g", "-gdwarf-4", "-gz", "-gsplit-dwarf"), one("-fPIE", "-fno-pie", "-fPIC"), one("-ffunction-sections", "-fno-function-sections")}
	compile = strings.Fields(strings.Join(compile, " "))
	flags := strings.Fields(one("", "--stapsdt", "--layout=relative", "--layout=relative --functions", "--layout=pairs --functions", "--no-functions",
		"--stapsdt --dtrace", "--no-records --stapsdt"))
	if len(flags) > 0 && flags[0] == "--layout=relative" && m.Cannot(l, toolchains.Distances) != "" {
		flags = nil
	}
	if m == toolchains.AMD64 || m == toolchains.I386 || m == toolchains.S390X {
		compile = append(compile, strings.Fields(one("", "-mfunction-return=thunk"))...)
	}
	if strings.HasPrefix(m.Name, toolchains.PPC64.Name) && compile[0] == "-Os" {
		compile[0] = "-O2" // it takes functions that mold does not make
	}
	for i, text := range randomProgram(r) {
		f.write(fmt.Sprintf("s%d.c", i), text)
	}
	f.must(append([]string{m.Tool("gcc"), "-c", "s0.c", "s1.c"}, compile...)...)
	f.convert(append(flags, "s0.o", "s1.o")...)
	f.convert("stubs", "-o", "probes.o", "s0.o", "s1.o")
	mode := "-no-pie"
	if compile[len(compile)-1] != "-fno-pie" && !strings.Contains(strings.Join(compile, " "), "-fno-pie") {
		mode = one("-pie", "-no-pie")
	}
	f.must(append([]string{m.Tool("gcc"), "-B" + tools.Driver(f.T, l.Path), mode, "-Wl,--build-id", "-o", "in", "s0.o", "s1.o", "probes.o"}, m.LinkFlags...)...)
	return fmt.Sprint(compile, flags, mode, l.Name)
}

// compare reports what is said of a site that is not what is said of it in the whole image, which has the symbols,
// nor less.
func (f directory) compare(what, symbols string, want, got site) {
	f.Helper()
	wrong := func(which string, want, got any) {
		f.Errorf("%s: %s is %v, and %v in the whole image", what, which, got, want)
	}
	if got.Kind != want.Kind {
		wrong("the kind", want.Kind, got.Kind)
	}
	if got.State != want.State && got.State != "unknown" {
		wrong("the state", want.State, got.State)
	}
	if got.provider+got.name != "" && (got.provider != want.provider || got.name != want.name) {
		wrong("the probe", want.provider+want.name, got.provider+got.name)
	}
	switch sub := got.Function != "" && got.NoSymbol && got.FunctionOffset == want.FunctionOffset; {
	case got.Function == "", got.Unsized, sub:
	case got.Recorded && got.FunctionOffset == want.FunctionOffset && isAlias(got, symbols):
	case got.Function != want.Function || got.FunctionOffset != want.FunctionOffset:
		wrong("the function", fmt.Sprintf("%s+%#x", want.Function, want.FunctionOffset), fmt.Sprintf("%s+%#x", got.Function, got.FunctionOffset))
	}
	if got.Source != "" && got.Source != want.Source {
		wrong("the source", want.Source, got.Source)
	}
	w, g := want.Semaphore, got.Semaphore
	if g == nil {
		return
	}
	if w == nil || g.Address != w.Address || g.Symbol != "" && g.Symbol != w.Symbol || (g.Value == nil) != (w.Value == nil) {
		wrong("the semaphore", w, g)
	}
}

// rulesOf returns the rules of the findings in a file.
func (f directory) rulesOf(file string) map[string]bool {
	f.Helper()
	got := f.run("check", "--format=json", file)
	var out struct{ Findings []struct{ Rule string } }
	if err := json.Unmarshal([]byte(got.Stdout), &out); err != nil {
		f.Fatalf("%s: %v\n%s%s", file, err, got.Stdout, got.Stderr)
	}
	rules := map[string]bool{}
	for _, finding := range out.Findings {
		rules[finding.Rule] = true
	}
	return rules
}

// checkFindings has check find no more in a file than in the whole image, but for what it
// cannot tell any more.
func (f directory) checkFindings(what string, whole map[string]bool) {
	f.Helper()
	for rule := range f.rulesOf("out") {
		// LLVM's tools strip notes, which no code loads. Then no tracer raises a semaphore. And
		// without sections nothing is found.
		lost := (rule == "dead-guard" || rule == "missing-note" || rule == "no-probes") && !f.hasNotes("out")
		if !whole[rule] && rule != "unknown-site" && rule != "unanchored-site" && !lost {
			f.Errorf("%s: %s is found, and not in the whole image", what, rule)
		}
	}
}

func (f directory) hasNotes(name string) bool {
	f.Helper()
	return strings.Contains(tools.Output(f.T, "readelf", "-nW", filepath.Join(f.path, name)), "stapsdt")
}

// checkResolve has resolve say of each site what list says.
func (f directory) checkResolve(what string, sites map[string]site) {
	f.Helper()
	for address, s := range sites {
		got := f.run("resolve", "--json", "out", address)
		var out struct{ Addresses []listjson.Site }
		if err := json.Unmarshal([]byte(got.Stdout), &out); err != nil || len(out.Addresses) != 1 {
			f.Fatalf("%s: %v\n%s%s", what, err, got.Stdout, got.Stderr)
		}
		r := out.Addresses[0]
		if (r.Function != s.Function && s.Function != "-") || r.FunctionOffset != s.FunctionOffset || r.Unsized != s.Unsized || r.NoSymbol != s.NoSymbol || r.Source != s.Source {
			f.Errorf("%s: %s: resolve says %+v, list %+v", what, address, r, s)
		}
		return // one of them is enough
	}
}

// listed is a site in the JSON of list.
type listed struct {
	Address  string
	Symbol   string
	Function string
	NoSymbol bool `json:"no_symbol"`
	State    string
	Operands string
}

// Each note of the system's own programs and libraries is a probe, with the function that other tools
// find at its address.
func TestProbesOfTheSystem(t *testing.T) {
	tools.Need(t, "readelf", "eu-addr2line")
	var document struct {
		Images []struct {
			Image  string
			Probes []struct {
				Provider, Name string
				Sites          []listed
			}
			Errors []string
		}
	}
	f := newDirectory(t)
	expect.OK(t, json.Unmarshal([]byte(f.run("list", "--system", "--json").Stdout), &document))
	total := 0
	for _, image := range document.Images {
		if !isInstalled(image.Image) {
			continue
		}
		sites, got := map[string]listed{}, map[string]bool{}
		for _, p := range image.Probes {
			for _, s := range p.Sites {
				sites[s.Address] = s
				got[fmt.Sprintf("%s %s %s %s", s.Address, p.Provider, p.Name, s.Operands)] = true
				if s.State != "disabled" {
					t.Errorf("%s: %+v", image.Image, s)
				}
			}
		}
		expect.Equal(t, notesOf(t, image.Image), slices.Sorted(maps.Keys(got)), "%s", image.Image)
		checkFunctions(t, image.Image, sites)
		total += len(got)
		if len(image.Errors) > 0 {
			t.Errorf("%s: %v", image.Image, image.Errors)
		}
	}
	if total == 0 {
		t.Error("no library has a probe, libstdc++.so.6 neither")
	}
	t.Logf("%d probes in %d files", total, len(document.Images))
	f.checkPaths(t)
}

// isInstalled reports whether a file is one of the system's own. Those of processes that other tests run may be gone.
func isInstalled(path string) bool {
	return strings.HasPrefix(path, "/usr/") || strings.HasPrefix(path, "/lib")
}

// checkPaths checks that the table of the whole system names with each probe the file that has it.
func (f directory) checkPaths(t *testing.T) {
	t.Helper()
	rows := strings.Split(strings.TrimSpace(f.run("list", "--system", "libstdcxx:::catch").Stdout), "\n")
	if len(rows) < 2 {
		t.Fatal("no file has libstdc++'s probe of catch")
	}
	for _, row := range rows[1:] {
		columns := strings.Fields(row)
		path := columns[len(columns)-1]
		if !isInstalled(path) {
			continue
		}
		isCatch := func(note string) bool { return strings.Contains(note, " libstdcxx catch ") }
		if !slices.ContainsFunc(notesOf(t, path), isCatch) {
			t.Errorf("%s: readelf finds no such probe there", row)
		}
	}
}

// notesOf returns the probes that readelf finds in the notes of a file, sorted.
func notesOf(t *testing.T, path string) []string {
	t.Helper()
	found := map[string]bool{}
	note := regexp.MustCompile(`Provider: (.*)\n\s+Name: (.*)\n\s+Location: 0x0*([0-9a-f]+), .*\n\s+Arguments: ?(.*)\n`)
	for _, m := range note.FindAllStringSubmatch(tools.Output(t, "readelf", "-nW", path), -1) {
		found[fmt.Sprintf("0x%s %s %s %s", m[3], strings.ReplaceAll(m[1], "__", "-"), strings.ReplaceAll(m[2], "__", "-"), m[4])] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// checkFunctions compares the functions of sites with those that elfutils finds.
func checkFunctions(t *testing.T, path string, sites map[string]listed) {
	t.Helper()
	addresses := slices.Sorted(maps.Keys(sites))
	lines := strings.Split(tools.Output(t, "eu-addr2line", append([]string{"-f", "-e", path}, addresses...)...), "\n")
	for i, address := range addresses {
		s, want := sites[address], lines[2*i]
		symbol := s.Symbol
		if symbol == "" {
			symbol = s.Function
		}
		if symbol != want && !(want == "??" && (s.NoSymbol || symbol == "")) {
			t.Errorf("%s: %s: got the function %s, and eu-addr2line %s", path, address, symbol, want)
		}
	}
}

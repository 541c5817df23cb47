package states

import (
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// named is a program with probe calls, tail calls and is-enabled tests, and with one that
// the linker drops. PROBE and ENABLED are what its stubs are called.
const named = `
#define PASTE(a, b) a##b
#define NAME(a, b) PASTE(a, b)
#define P(id) NAME(PROBE, id)
#define E(id) NAME(ENABLED, id)
void P(shop___placed)(int), P(shop___sent)(int), P(shop___unused)(int), P(plain)(void), HOOK(int);
int E(shop___placed)(void), E(shop___sent)(void);
int sum;
__attribute__((noinline)) void call(int x) { P(shop___placed)(x); sum += x; }
__attribute__((noinline)) void tail(int x) { sum -= x; P(shop___sent)(x); }
__attribute__((noinline)) void perhaps(int x) { if (x > 3) P(shop___sent)(x); }
__attribute__((noinline)) int test(int x) { if (E(shop___placed)()) P(shop___placed)(x); return x; }
__attribute__((noinline)) int tests(void) { return E(shop___sent)(); }
__attribute__((noinline)) void others(int x) { P(plain)(); HOOK(x); sum++; }
void dropped(int x) { P(shop___unused)(x); sum++; }
int main(int argc, char **argv) { call(argc); tail(argc); perhaps(argc); others(argc); return test(argc) + tests() == 77; }
`

// naming is what stubs, probe objects and sections are called.
type naming struct {
	probe, enabled, hook, object, section string
	stubs                                 []string // the flags of the stubs' names
	records                               []string // those of probe objects' names and sections
}

// usual are the default names; --symbol has none. custom are as long as these, so that no
// section has another size.
var (
	usual = naming{
		probe: "__dtrace_probe_", enabled: "__dtrace_isenabled_", hook: "hook_of_default", object: "sdt_", section: "sdt_instances_set",
		stubs: []string{"--symbol=hook_of_default"},
	}
	custom = naming{
		probe: "__custom_prefix", enabled: "__custom_isenabled_", hook: "hook_of_customs", object: "zzz_", section: "zzz_instances_set",
		stubs:   []string{"--prefix=__custom_prefix", "--enabled-prefix=__custom_isenabled_", "--symbol=hook_of_customs"},
		records: []string{"--probe-object-prefix=zzz_", "--section=zzz_instances_set"},
	}
)

// asUsual writes the usual names for custom ones, in a layout.
func asUsual(flags []string, text string) string {
	section, tests := usual.section, "sdt_isenabled_set"
	if slices.Contains(flags, "--layout=relative") {
		section, tests = "sdt_instances_rel", "sdt_isenabled_rel"
	}
	return strings.NewReplacer(
		custom.probe, usual.probe, custom.enabled, usual.enabled, custom.hook, usual.hook,
		custom.section+"_isenabled", tests, custom.section, section, ", section "+custom.section, "", custom.object, usual.object,
	).Replace(text)
}

// A command with the flags of custom names says of a program what it says by default of the
// same program with the default names.
func TestCustomNames(t *testing.T) {
	for _, flags := range [][]string{{"--layout=pairs"}, {"--stapsdt"}, {"--layout=relative"}, {"--stapsdt", "--dtrace", "--drop-relocations"}, {"--no-records"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			tools.Need(t, "gcc", "strip")
			want, got := usual.answers(t, flags), custom.answers(t, flags)
			if len(want) != len(got) || len(want) < 20 {
				t.Fatalf("%d and %d answers", len(want), len(got))
			}
			for i := range want {
				expect.Equal(t, want[i].text, asUsual(flags, got[i].text), "%s", want[i].command)
			}
		})
	}
}

// answer is what a command says.
type answer struct{ command, text string }

// answers returns those of all commands that read what conversions have written.
func (n naming) answers(t *testing.T, flags []string) (all []answer) {
	f := newDirectory(t)
	f.write("app.c", named)
	f.must("gcc", "-O2", "-g", "-ffunction-sections", "-c", "-DPROBE="+n.probe, "-DENABLED="+n.enabled, "-DHOOK="+n.hook, "app.c")
	names := slices.Concat(n.stubs, n.records)
	layout := slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return !strings.HasPrefix(flag, "--layout") })
	if len(layout) == 0 { // a name of sections is for a reader of records, too
		layout = []string{"--layout=pairs"}
	}
	ask := func(args ...string) {
		r := f.run(args...)
		command := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return slices.Contains(names, arg) })
		text := strings.Join([]string{string(rune('0' + r.Status)), r.Stdout, r.Stderr}, "\n")
		all = append(all, answer{strings.Join(command, " "), strings.ReplaceAll(text, f.path, "DIR")})
	}
	with := func(command string, more []string, files ...string) []string {
		var words []string
		if command != "" {
			words = append(words, command)
		}
		return slices.Concat(words, more, files)
	}
	ask(with("inspect", slices.Concat(names, layout), "app.o")...)
	ask(with("inspect", slices.Concat(names, layout), "--json", "app.o")...)
	ask(with("check", names, "app.o")...)
	ask(with("", slices.Concat(names, flags), "-n", "-v", "app.o")...)
	ask(with("", slices.Concat(names, flags), "--json", "-o", "converted.o", "app.o")...)
	f.keep("sites.json", all[len(all)-1].text)
	ask(with("", slices.Concat(names, flags), "-v", "converted.o")...)
	ask(with("inspect", slices.Concat(names, layout), "converted.o")...)
	ask(with("list", names, "-v", "converted.o")...)
	ask(with("stubs", names, "-o", "probes.o", "converted.o")...)
	for _, args := range [][]string{
		with("stubs", names, "--asm", "-o", "out.s", "app.o", "converted.o"),
		with("sites", slices.Concat(names, layout), "--asm", "-o", "out.s", "app.o"),
	} {
		ask(args...)
		text := disk.Read(t, f.file("out.s"))
		all[len(all)-1].text += string(text)
	}
	if slices.Contains(flags, "--drop-relocations") || slices.Contains(flags, "--no-records") {
		f.must("gcc", "-o", "program", "converted.o", "probes.o")
	} else {
		f.must("gcc", "-Wl,--gc-sections", "-o", "program", "converted.o", "probes.o")
	}
	f.must("strip", "-o", "stripped", "program")
	for _, file := range []string{"converted.o", "program", "stripped"} {
		ask(with("list", names, "-v", file)...)
		ask(with("list", names, "--json", file)...)
		ask(with("list", names, file, "shop:::sent")...)
		ask(with("list", names, "-n", "plac*", file)...)
		ask(with("check", names, file)...)
		ask(with("check", names, "--format=json", file)...)
		ask(with("check", names, "--require", "shop:::placed", "--require", "shop:::lost", file)...)
	}
	ask(with("check", names, "--manifest", "sites.json", "program")...)
	ask(with("check", names, "--write-baseline", "baseline", "program")...)
	ask(with("check", names, "--baseline", "baseline", "program")...)
	ask(slices.Concat([]string{"ld"}, names, flags, []string{"--", "-r", "-o", "linked.o", "app.o"})...)
	ask(with("list", names, "-v", "linked.o")...)
	return all
}

// keep writes what a command has printed to its standard output.
func (f directory) keep(name, text string) {
	f.Helper()
	_, text, _ = strings.Cut(text, "\n")
	if end := strings.LastIndex(text, "}\n"); end >= 0 {
		text = text[:end+2]
	}
	disk.Write(f, f.file(name), text)
}

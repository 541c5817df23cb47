package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// sells compiles a source with the probes of a provider file to sell.o, and main.o beside it.
func (b *build) sells(flags ...string) {
	b.Helper()
	b.write("shop.d", "provider shop { probe sold(int); probe order__placed(int, char *); probe dead(int); };\n")
	b.run(converter, "provider", "-h", "-s", "shop.d")
	b.write("main.c", "#include \"program.h\"\nC int sell(int);\nint main(void) { return sell(1); }\n")
	b.compile("sell.o", "sell.c", append([]string{"-I."}, flags...)...)
	b.compile("main.o", "main.c", flags...)
}

// Probes of provider files are there for --require, in objects and in what is linked of them,
// stripped or not.
func TestNoteSites(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.sells()
		require := []string{"--require", "shop:::sold", "--require", "shop::*sell*:order-placed", "--require", "dead"}
		b.clean(append(require, "sell.o", "main.o")...)
		b.finds([]string{"missing-probe   shop:::so", "missing-probe   shop::dead:sold"}, "--require", "shop:::so", "--require", "shop::dead:sold", "sell.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			all := []string{"sell.o", "main.o"}
			for _, mode := range []string{"-pie", "-no-pie", "-static", "-shared"} {
				b.link(l, "prog", append(all, mode)...)
				b.clean(append(require, "--require=shop:prog::sold", "prog")...)
			}
			b.run(b.machine.Tool("strip"), "prog") // the library: its dynamic symbols are left
			b.clean("--require=shop:prog::sold", "prog")
		})
	})
}

// keepsUnused reports whether a linker keeps unused functions: GNU ld for their
// notes, mold for .ARM.exidx, and all that have descriptors.
func keepsUnused(l toolchains.Linker, m *toolchains.Machine) bool {
	return l.Family == "bfd" || l.Family == "mold" && (m == toolchains.ARM || m == toolchains.PPC64)
}

// A note that a linker keeps of a dropped function names no site.
func TestNotesOfDroppedFunctions(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.sells("-ffunction-sections")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			if l.Family == "gold" {
				return // which refuses notes of dropped functions
			}
			b.link(l, "prog", "sell.o", "main.o", "-Wl,--gc-sections")
			b.clean("--require=shop:::sold", "prog")
			want := []string{}
			if !b.defines("prog", "dead") {
				want = append(want, "missing-probe   shop:::dead")
			} else if !keepsUnused(l, b.machine) {
				b.Error("it keeps a dead function, so this test tests nothing")
			}
			b.finds(want, "--require=shop:::dead", "prog")
		})
	})
}

// What is left of the note of a large section that a linker drops is a place in other code.
func TestNoteInOtherCode(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("dead.s", noteMacro+".text\n.zero 0x20000\n1: nop\nnote sold\n")
		b.write("pad.s", ".text\n.globl pad\n.type pad, %function\npad: .fill 0x10000, 4, -1\n.size pad, . - pad\n")
		b.write("main.c", "#include \"program.h\"\nC int pad(int);\nint main(int n, char **v) { return n < 9 || pad(n); }\n")
		for _, name := range []string{"dead", "pad"} {
			b.run(b.machine.Tool("as"), "-o", name+".o", name+".s")
		}
		b.compile("main.o", "main.c")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			if l.Family == "bfd" || l.Family == "gold" {
				return // one keeps the section for its note, the other refuses the link
			}
			b.link(l, "prog", "main.o", "pad.o", "dead.o", "-pie", "-Wl,--gc-sections")
			want := []string{"unknown-site prog pad app:::sold"}
			if b.machine.Relaxes { // whose assemblers have a symbol at each site, and so 0 is left
				want = []string{}
			}
			// These notes have no base.
			b.finds(want, "--allow=broken-note", "--allow=no-probes", "prog")
		})
	})
}

// What is at the site of a note, and around it.
func TestBrokenNoteSites(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.sells()
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "sell.o", "main.o", "-no-pie")
			at := b.siteOf("prog", "shop:::sold")
			for _, code := range [][]byte{b.code().trap, b.code().call} {
				b.overwrite("prog", at, code)
				for _, f := range b.finds([]string{"unknown-site prog sell shop:::sold"}, "--require=shop:::sold", "prog") {
					if !strings.HasPrefix(f.Message, fmt.Sprintf("a note names this site, which holds % x", code[:2])) || f.Address != at || f.Line == 0 {
						b.Errorf("%+v", f)
					}
				}
			}
		})
	})
}

// A note may name data.
func TestStrayNotes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("stray.s", noteMacro+".data\n.balign 8\n1: .dc.a 0\nnote sold\n")
		b.write("main.c", "int main(void) { return 0; }\n")
		b.run(b.machine.Tool("as"), "-o", "stray.o", "stray.s")
		b.compile("main.o", "main.c")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "main.o", "stray.o", "-no-pie")
			b.finds([]string{"stray-note prog  app:::sold"}, "--allow=no-probes", "prog")
		})
	})
}

// noteMacro makes a note of what is at 1.
const noteMacro = `
.macro note name
.pushsection .note.stapsdt, "", %note
.balign 4
.4byte 8, 9f - 8f, 3
.asciz "stapsdt"
8: .dc.a 1b, 0, 0
.asciz "app"
.asciz "\name"
.byte 0
9: .balign 4
.popsection
.endm
`

// Assembly that is in no function, and a site that two probes have.
func TestNoteSitesOfAssembly(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("note.s", noteMacro+`
.text
1: nop
note lonely
.globl one
.type one, %function
one:
1: nop
note first
note second
note first
.size one, . - one
`)
		b.run(b.machine.Tool("as"), "-o", "note.o", "note.s")
		b.finds([]string{"duplicate-record note.o one app:::second", "unanchored-site note.o  app:::lonely"},
			"--require=app::one:first", "--require=app::one:second", "--require=lonely", "note.o")
		// What is stripped may have functions without symbols.
		b.run(b.machine.Tool("ld"), "-shared", "-s", "-o", "stripped.so", "note.o")
		b.finds([]string{"duplicate-record stripped.so one app:::second"}, "--allow=broken-note", "stripped.so")
	})
}

// The manifest of a conversion has the sites of objects that nothing has to be converted in.
func TestManifestOfNotes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.sells("-ffunction-sections")
		b.write("m.json", b.output(converter, "--layout=pairs", "--json", "sell.o", "main.o"))
		b.checkNotes("m.json")
	})
}

// checkNotes looks at what a manifest says of the sites of sells.
func (b *build) checkNotes(name string) {
	b.Helper()
	var m struct {
		Objects []struct {
			Status string
			Sites  []struct {
				Function, Kind, State, Probe string
				Record                       *struct{}
				Note                         struct{ Provider, Name, Semaphore string }
			}
		}
	}
	if err := json.Unmarshal([]byte(b.output("cat", name)), &m); err != nil || len(m.Objects) != 2 || len(m.Objects[0].Sites) != 3 {
		b.Fatalf("%v %+v", err, m)
	}
	for _, s := range m.Objects[0].Sites {
		n := s.Note
		if m.Objects[0].Status != "unchanged" || s.Function == "" || s.Kind != "probe" || s.State != "disabled" || s.Record != nil ||
			n.Provider != "shop" || s.Probe != "shop___"+n.Name || n.Semaphore != "shop_"+n.Name+"_semaphore" {
			b.Errorf("%+v", s)
		}
	}
}

// A site that has a record and a note is one, known by its record.
func TestNotesOfRecords(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled()
		b.convert("--stapsdt", "fire.o", "define.o")
		b.write("m.json", b.output(converter, "inspect", "--json", "fire.o", "define.o"))
		if m := b.output("cat", "m.json"); strings.Contains(m, `"note"`) || strings.Count(m, `"noted": true`) != 4 {
			b.Errorf("the recorded sites have a note each, and are not sites of notes: %s", m)
		}
		b.clean("--require", "app:::start", "--require-notes", "fire.o", "define.o")
		b.compile("define.o", "define.c")
		b.convert("define.o")
		b.finds([]string{"missing-note define.o stop app___stop"}, "--require-notes", "--allow=mixed-flags", "fire.o", "define.o")
	})
}

// TestCollectedBase links SystemTap's macros with --gc-sections. GNU ld keeps what only notes refer to, and other
// linkers do not: gdb, which looks for the base, says which program has lost it.
func TestCollectedBase(t *testing.T) {
	tools.Need(t, "gdb-multiarch", "readelf", "objcopy")
	eachToolchain(t, func(b *build) {
		b.theirs("one.o", "one")
		b.write("main.c", `#ifdef __cplusplus
extern "C"
#endif
int one(int n);
int main(void) { return one(0); }
`)
		b.compile("main.o", "main.c")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, flag := range []string{"-Wl,--gc-sections", "-Wl,--gc-sections,-u,_.stapsdt.base", "-Wl,--no-gc-sections"} {
				b.link(l, "prog", "one.o", "main.o", flag)
				b.run(b.machine.Tool("objcopy"), "--only-keep-debug", "prog", "prog.debug")
				b.finds([]string{}, "--allow=no-probes", "prog.debug")
				found := b.output("gdb-multiarch", "-q", "-nx", "-batch", "-ex", "info probes stap", "prog")
				if !strings.Contains(found, "No probes matched") {
					b.clean("--allow=early-semaphore", "prog")
					continue
				}
				if flag != "-Wl,--gc-sections" || l.Family == "bfd" {
					b.Errorf("%s: gdb finds no probe", flag)
				}
				b.message(b.finds([]string{"broken-note prog  "}, "--allow=early-semaphore", "prog"), "the linker has collected it (--gc-sections); link with -Wl,-u,_.stapsdt.base")
			}
		})
	})
}

// TestLocalizedBase makes the symbols of a converted object local, as vendored libraries are made. llvm-objcopy takes the flag from
// COMDAT groups, too, so that each linker keeps two bases.
func TestLocalizedBase(t *testing.T) {
	const external = "#ifdef __cplusplus\nextern \"C\"\n#endif\n"
	eachToolchain(t, func(b *build) {
		for _, name := range []string{"one", "two"} {
			b.write(name+".c", "#include <sdt.h>\nDTRACE_PROBE_DECLARE(shop___"+name+");\n"+external+"int "+name+"(int n) { DTRACE_PROBE1(shop___"+name+", int, n); return n; }\n")
			b.compile(name+".o", name+".c")
		}
		b.write("main.c", external+"int one(int n);\n"+external+"int two(int n);\nint main(void) { return one(0) + two(0); }\n")
		b.compile("main.o", "main.c")
		b.convert("--stapsdt", "one.o", "two.o")
		b.run(toolchains.LLVM("llvm-objcopy"), "--localize-hidden", "two.o")
		b.message(b.check("two.o").of("broken-note"), "convert the object after objcopy, too")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "one.o", "two.o", "main.o")
			b.message(b.check("prog").of("broken-note"), "at wrong addresses")
		})
		b.convert("--stapsdt", "two.o")
		b.clean("two.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "again", "one.o", "two.o", "main.o")
			b.clean("again")
		})
	})
}

// of returns the findings of a rule.
func (r report) of(rule string) []finding {
	return slices.DeleteFunc(r.Findings, func(f finding) bool { return f.Rule != rule })
}

package attach

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// usdtNote is one of DTrace's notes.
type usdtNote struct {
	note
	function  string
	arguments int
}

// usdtNotes reads what dtprobed reads of an image: the sections .note.usdt and .rodata.
// The number of sections of notes is the second result.
func usdtNotes(t *testing.T, path string) (all []usdtNote, sections int) {
	t.Helper()
	f := disk.OpenELF(t, path)
	rodata := f.Section(".rodata")
	strings := expect.Value(rodata.Data())(t)
	for _, s := range f.Sections {
		if s.Name != ".note.usdt" || s.Type != elf.SHT_NOTE {
			continue
		}
		sections++
		data := expect.Value(s.Data())(t)
		for len(data) > 0 {
			sizes := [3]uint32{}
			for i := range sizes {
				sizes[i] = f.ByteOrder.Uint32(data[4*i:])
			}
			owner, desc := string(data[12:12+sizes[0]-1]), data[12+(sizes[0]+3)&^3:]
			data, desc = desc[min(int(sizes[1]+3)&^3, len(desc)):], desc[:sizes[1]]
			if owner != "usdt" {
				continue
			}
			if sizes[2] != 1 {
				t.Errorf("a note of type %d", sizes[2])
			}
			n := usdtNote{note: note{location: f.ByteOrder.Uint64(desc)}}
			name := f.ByteOrder.Uint64(desc[8:]) - rodata.Addr
			if name >= uint64(len(strings)) {
				t.Fatalf("%s: the name at %#x is outside .rodata", path, f.ByteOrder.Uint64(desc[8:]))
			}
			n.function, _ = cut(strings[name:])
			n.provider, desc = cut(desc[16:])
			n.name, desc = cut(desc)
			n.arguments = int(desc[0])
			if n.args, desc = cut(desc[1:]); len(desc) > 0 {
				t.Errorf("%d bytes behind a note", len(desc))
			}
			all = append(all, n)
		}
	}
	return all, sections
}

// cut takes the string at the start of data.
func cut(data []byte) (s string, rest []byte) {
	before, rest, _ := bytes.Cut(data, []byte{0})
	return string(before), rest
}

// checkDTrace compares an image's notes for DTrace with its records, what they say of
// functions with addr2line, and how many there are with readelf.
func checkDTrace(t *testing.T, m *toolchains.Machine, image string) []usdtNote {
	t.Helper()
	notes, _ := usdtNotes(t, image)
	var got, functions []string
	var plain []note
	// mold 1.10 -r, and another linker after it, leave references behind the end of
	// .debug_line_str for some names of directories, with unconverted objects too.
	symbols := filepath.Join(t.TempDir(), "symbols")
	tools.Must(t, m.Tool("objcopy"), "--strip-debug", image, symbols)
	addresses := []string{"-f", "-e", symbols}
	for _, n := range notes {
		got, plain = append(got, n.String()), append(plain, n.note)
		addresses = append(addresses, fmt.Sprintf("%#x", n.location))
		if n.arguments != strings.Count(n.args, "@") {
			t.Errorf("%v: %d arguments, and operands %q", n, n.arguments, n.args)
		}
	}
	lines := strings.Split(tools.Must(t, m.Tool("addr2line"), addresses...), "\n")
	for i, n := range notes {
		functions = append(functions, n.function)
		if name, _, _ := strings.Cut(lines[2*i], "."); name != n.function {
			t.Errorf("%v is in %q, and addr2line says %q", n, n.function, lines[2*i])
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(recordsOf(t, image), got); diff != "" || len(got) == 0 {
		t.Errorf("%d notes; records and notes: %s", len(got), diff)
	}
	if n := strings.Count(tools.Must(t, "readelf", "-nW", image), "\n  usdt "); n != len(notes) {
		t.Errorf("%d notes, and readelf shows %d", len(notes), n)
	}
	for _, want := range []string{"app_run", "app_tail"} {
		if !slices.Contains(functions, want) {
			t.Errorf("no note of function %s: %q", want, functions)
		}
	}
	if m == toolchains.AMD64 {
		checkArgs(t, plain, wantArgs)
	}
	return notes
}

const prototypes = "--prototypes=testdata/prototypes.h"

// provider returns an object as `dtrace -G` makes it, as far as linkers are concerned.
func (p program) provider(t *testing.T) string {
	t.Helper()
	out := filepath.Join(p.dir, "provider.o")
	command := p.machine.CC(p.cc)
	tools.Must(t, command[0], append(command[1:], "-c", "-o", out, "testdata/provider.s")...)
	return out
}

// TestDTraceLinks links notes for DTrace alone in all ways, beside a provider's note.
func TestDTraceLinks(t *testing.T) {
	all := product.New("compiler", "linker", "mode")
	all.Singly = true // TestLinks has the pairs
	for _, c := range []compiler{gcc, clang} {
		p := compileProgram(t, c, "-DSDT_CALLS")
		objects := append(p.convertWith(t, "--dtrace", prototypes), p.main, p.rest)
		provider := p.provider(t)
		for _, ld := range linkers {
			dir := linker(t, ld)
			for _, md := range modes {
				all.Add(c.cc.Name+"/"+ld.Name+"/"+md.name, []string{c.cc.Name, ld.Name, md.name}, func(t *testing.T) {
					out := p.image(t, "image", append(md.flags, "-B"+dir), append(objects, provider)...)
					notes := checkDTrace(t, c.machine, out)
					dead := slices.ContainsFunc(notes, func(n usdtNote) bool { return n.name == "dead" })
					gone := strings.HasSuffix(md.name, "e-gc") && (ld.Family == "bfd" || ld.Family == "lld")
					if dead == gone {
						t.Errorf("a note of the dead function: %t", dead)
					}
					if _, n := usdtNotes(t, out); n != 1 && ld.Family != "mold" {
						t.Errorf("%d sections of notes", n)
					}
				})
			}
		}
	}
	all.Run(t)
}

// TestDTraceMachines links notes of both kinds for each machine whose registers DTrace
// does not take for numbers.
func TestDTraceMachines(t *testing.T) {
	for _, c := range []compiler{gcc, arm64, i386, riscv64, s390x} {
		t.Run(c.machine.Name, func(t *testing.T) {
			p := compileProgram(t, c, "-DSDT_CALLS")
			for _, flags := range [][]string{{"--dtrace"}, {"--stapsdt", "--dtrace"}, {"--dtrace", "--layout=relative"}} {
				objects := append(p.convertWith(t, append(flags, prototypes)...), p.main, p.rest)
				for _, gc := range []string{"-Wl,--no-gc-sections", "-Wl,--gc-sections"} {
					out := p.image(t, "image", []string{"-pie", gc}, objects...)
					notes := checkDTrace(t, c.machine, out)
					if len(flags) > 1 && flags[0] == "--stapsdt" && len(checkNotes(t, out)) != len(notes) {
						t.Errorf("%d notes for DTrace, and another number of others", len(notes))
					}
				}
			}
		})
	}
}

// TestDTraceNops has operands of the compiler in notes: only those that DTrace reads.
func TestDTraceNops(t *testing.T) {
	for _, c := range []compiler{gcc, clang, arm64} {
		t.Run(c.machine.Name+"/"+c.cc.Name, func(t *testing.T) {
			p := compileProgram(t, c)
			objects := append(p.convertWith(t, "--dtrace", prototypes), p.main, p.rest)
			out := p.image(t, "image", []string{"-pie"}, objects...)
			records := recordsOf(t, out)
			notes, _ := usdtNotes(t, out)
			shown := map[string]bool{}
			for _, n := range notes {
				shown[n.name] = true
				if !slices.Contains(records, n.String()) {
					t.Errorf("%v has no record", n)
				}
				if strings.ContainsAny(n.args, ":") || strings.Contains(n.args, "rip") {
					t.Errorf("%v: operands %q", n, n.args)
				}
			}
			for _, name := range []string{"tail", "half__way", "half__done", "declared"} {
				if !shown[name] {
					t.Errorf("no note of %s", name)
				}
			}
		})
	}
}

package attach

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// mode is a way to link an image.
type mode struct {
	name  string
	flags []string
}

var modes = []mode{
	{"exe", []string{"-no-pie"}},
	{"pie", []string{"-pie"}},
	{"static", []string{"-static"}},
	{"shared", []string{"-shared", "-Wl,-z,defs"}},
	{"pie-gc", []string{"-pie", "-Wl,--gc-sections"}},
	{"exe-gc", []string{"-no-pie", "-Wl,--gc-sections"}},
	{"shared-gc", []string{"-shared", "-Wl,--gc-sections"}},
}

// TestLinks compares notes with records in all that linkers make of them.
func TestLinks(t *testing.T) {
	all := product.New("compiler", "linker", "mode")
	for _, c := range []compiler{gcc, clang} {
		p := compileProgram(t, c, "-g")
		for _, ld := range linkers {
			dir := linker(t, ld)
			for _, md := range modes {
				all.Add(c.cc.Name+"/"+ld.Name+"/"+md.name, []string{c.cc.Name, ld.Name, md.name}, func(t *testing.T) {
					out := p.image(t, "image", append(md.flags, "-B"+dir), append(p.convert(t), p.main, p.rest)...)
					notes := checkNotes(t, out)
					checkArgs(t, notes, wantArgs)
					dead := slices.ContainsFunc(notes, func(n note) bool { return n.name == "dead" })
					gone := strings.HasSuffix(md.name, "e-gc") && (ld.Family == "bfd" || ld.Family == "lld")
					if dead == gone {
						t.Errorf("a note of the dead function: %t", dead)
					}
				})
			}
		}
	}
	all.Run(t)
}

// TestNotesAlone links notes without records. mold keeps those of what it drops.
func TestNotesAlone(t *testing.T) {
	p := compileProgram(t, gcc)
	all := notesOf(t, p.executable(t))
	for _, ld := range linkers {
		for _, gc := range []string{"-Wl,--no-gc-sections", "-Wl,--gc-sections"} {
			t.Run(ld.Name+gc, func(t *testing.T) {
				out := p.image(t, "image", []string{gc, "-B" + linker(t, ld)}, append(p.convert(t, "--no-records"), p.main, p.rest)...)
				notes := notesOf(t, out)
				code := tools.Must(t, "objdump", "-d", "--no-show-raw-insn", out)
				for _, n := range notes {
					if !strings.Contains(code, strings.TrimPrefix(n.String()[strings.Index(n.String(), "0x"):], "0x")+":\t") && !(ld.Family == "mold" && n.location < 0x100) {
						t.Errorf("%v is not an instruction", n)
					}
				}
				if len(notes) > len(all) || len(notes) < 7 {
					t.Errorf("%d notes, of %d", len(notes), len(all))
				}
			})
		}
	}
}

// brokenGroups matches what linkers say of an object in which -r has put a section into
// two groups.
var brokenGroups = regexp.MustCompile(`invalid section group|file format not recognized`)

// TestRelocatable links in two steps, with each pair of linkers.
func TestRelocatable(t *testing.T) {
	all := product.New("compiler", "merging linker", "linker", "garbage")
	for _, c := range []compiler{gcc, clang} {
		p := compileProgram(t, c)
		for _, first := range linkers {
			merged := filepath.Join(p.dir, first.Name+".o")
			args := append([]string{"-r", "-o", merged}, append(p.convert(t), p.main, p.rest)...)
			tools.Must(t, first.Path, args...)
			for _, ld := range linkers {
				for _, gc := range []string{"-Wl,--no-gc-sections", "-Wl,--gc-sections"} {
					all.Add(c.cc.Name+"/"+first.Name+"/"+ld.Name+gc, []string{c.cc.Name, first.Name, ld.Name, gc}, func(t *testing.T) {
						out, err := p.tryImage(t, "image", []string{"-pie", gc, "-B" + linker(t, ld)}, merged)
						if err != nil && !first.Can(toolchains.GroupsWithR) && brokenGroups.MatchString(err.Error()) {
							t.Skip(first.Cannot[toolchains.GroupsWithR])
						}
						expect.OK(t, err)
						checkNotes(t, out)
					})
				}
			}
		}
	}
	all.Run(t)
}

// TestBesideSystemTap links an object that has notes of SystemTap's macros, and
// converts one that has both.
func TestBesideSystemTap(t *testing.T) {
	if _, err := os.Stat("/usr/include/x86_64-linux-gnu/sys/sdt.h"); err != nil {
		tools.Unavailable(t, "no sys/sdt.h")
	}
	p := compileProgram(t, gcc)
	theirs := gcc.compile(t, p.dir, "theirs.c")
	both := filepath.Join(p.dir, "both.o")
	tools.Must(t, converter, "--stapsdt", "-o", both, theirs)
	for _, ld := range linkers {
		t.Run(ld.Name, func(t *testing.T) {
			objects := append([]string{both, p.main, p.rest}, p.convert(t)...)
			out := p.image(t, "image", []string{"-pie", "-B" + linker(t, ld)}, objects...)
			ours := map[string]int{}
			base := map[uint64]bool{}
			for _, n := range notesOf(t, out) {
				ours[n.provider]++
				base[n.base] = true
			}
			if ours["theirs"] != 1 || ours["mixed"] != 1 || len(base) != 1 {
				t.Errorf("notes %v, bases %v", ours, base)
			}
		})
	}
}

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
		p := compileProgram(t, c, "-DSDT_CALLS", "-g")
		objects := append(p.convertWith(t, "--dtrace"), p.main, p.rest)
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
			p := compileProgram(t, c, "-DSDT_CALLS", "-g")
			for _, flags := range [][]string{{"--dtrace"}, {"--stapsdt", "--dtrace"}, {"--dtrace", "--layout=relative"}} {
				objects := append(p.convertWith(t, flags...), p.main, p.rest)
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

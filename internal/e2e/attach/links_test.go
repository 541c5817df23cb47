package attach

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

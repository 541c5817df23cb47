package attach

import (
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

var oldClang = compiler{toolchains.AMD64, toolchains.OldClang}

// compileNops compiles the program whose probes are marked nops.
func compileNops(t *testing.T, c compiler, flags ...string) program {
	t.Helper()
	tools.Need(t, c.machine.CC(c.cc)[0], c.machine.CXX(c.cc)[0], c.driver(), "readelf")
	p := program{compiler: c, dir: t.TempDir()}
	for _, source := range []string{"nops.c", "nopscxx.cc", "nopscxx2.cc"} {
		p.probed = append(p.probed, c.compile(t, p.dir, source, flags...))
	}
	p.main = c.compile(t, p.dir, "main.c") // GNU ld 2.40 crashes over clang's debug information for riscv64
	return p
}

// runs returns what a program prints that runs its probes n times.
func (p program) runs(t *testing.T, exe string, n int) string {
	t.Helper()
	command := strings.Join(p.machine.Command(exe), " ")
	return tools.Must(t, "sh", "-c", fmt.Sprintf("yes | head -n %d | %s", n, command))
}

var atNop = regexp.MustCompile(`^nops:(\w+) (.*) \d+$`)

// written returns the nops as the assembler has put them into an image: those that no
// linker has dropped. What is folded or inlined is there once.
func written(t *testing.T, image string) []string {
	t.Helper()
	f := disk.OpenELF(t, image)
	symbols := expect.Value(f.Symbols())(t)
	var all []string
	for _, sym := range symbols {
		if match := atNop.FindStringSubmatch(sym.Name); match != nil && sym.Value != 0 { // mold leaves those of dropped code
			all = append(all, note{provider: "nops", name: match[1], location: sym.Value}.String()+" "+match[2])
		}
	}
	if f.Machine == elf.EM_ARM { // where clang writes numbers of registers that tracers read by name
		names := strings.NewReplacer("r11", "fp", "r12", "ip")
		for i := range all {
			all[i] = names.Replace(all[i])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkNops compares the notes of an image with its records and with what was written.
func checkNops(t *testing.T, image string) {
	t.Helper()
	var got []string
	for _, n := range checkNotes(t, image) {
		got = append(got, n.String()+" "+n.args)
	}
	slices.Sort(got)
	if diff := cmp.Diff(written(t, image), slices.Compact(got)); diff != "" || len(got) < 7 {
		t.Errorf("%d notes; written and notes: %s", len(got), diff)
	}
	if sections := tools.Must(t, "readelf", "-SW", image); strings.Contains(sections, ".sdt_operands") {
		t.Error("the operands are in the image")
	}
}

// nopModes are ways to link, with those that fold code where a linker has one.
func nopModes(ld toolchains.Linker) []mode {
	all := modes
	if ld.Family != "bfd" {
		all = append(all[:len(all):len(all)], mode{"pie-icf", []string{"-pie", "-Wl,--icf=all", "-Wl,--gc-sections"}})
	}
	return all
}

// TestNops links marked nops in all ways, and without a conversion too.
func TestNops(t *testing.T) {
	all := product.New("compiler", "linker", "mode")
	for _, c := range []compiler{gcc, oldClang, clang} {
		p := compileNops(t, c, "-g")
		for _, ld := range linkers {
			dir := linker(t, ld)
			for _, md := range nopModes(ld) {
				all.Add(c.cc.Name+"/"+ld.Name+"/"+md.name, []string{c.cc.Name, ld.Name, md.name}, func(t *testing.T) {
					flags := append(md.flags[:len(md.flags):len(md.flags)], "-B"+dir)
					for name, objects := range map[string][]string{"unconverted": p.probed, "converted": p.convert(t)} {
						out := p.image(t, name, flags, append(objects[:len(objects):len(objects)], p.main)...)
						if name == "converted" {
							checkNops(t, out)
						} else if notes := notesOf(t, out); len(notes) > 0 || len(written(t, out)) < 6 {
							t.Errorf("unconverted: %v", notes)
						}
						if !strings.HasPrefix(md.name, "shared") {
							if got := p.runs(t, out, 3); got != "ready\n" {
								t.Errorf("%s prints %q", name, got)
							}
						}
					}
				})
			}
		}
	}
	all.Run(t)
}

// TestNopsOfCompilers are operands as compilers write them by other flags.
func TestNopsOfCompilers(t *testing.T) {
	all := product.New("machine", "compiler", "flags")
	for _, c := range here(gcc, oldClang, clang, arm, armClang, arm64, i386, compiler{toolchains.I386, toolchains.Clang}, loong64, ppc64, ppc64le, riscv64, compiler{toolchains.ARM64, toolchains.Clang}, compiler{toolchains.LOONG64, toolchains.Clang}, compiler{toolchains.PPC64LE, toolchains.Clang}, compiler{toolchains.RISCV64, toolchains.Clang}, s390x, compiler{toolchains.S390X, toolchains.Clang}) {
		for _, flags := range []string{"-O0", "-O0 -fno-pic", "-Os -fno-pic -fno-function-sections", "-O3 -fPIE -fomit-frame-pointer"} {
			all.Add(c.machine.Name+"/"+c.cc.Name+flags, []string{c.machine.Name, c.cc.Name, flags}, func(t *testing.T) {
				t.Parallel()
				p := compileNops(t, c, strings.Fields(flags)...)
				out := p.image(t, "image", []string{"-no-pie"}, append(p.convert(t), p.main)...)
				checkNops(t, out)
			})
		}
	}
	all.Run(t)
}

// TestNopsMerged converts what ld -r has merged, and again with what is converted.
func TestNopsMerged(t *testing.T) {
	all := product.New("compiler", "merging linker", "objects", "linker")
	for _, c := range []compiler{gcc, clang} {
		p := compileNops(t, c)
		converted := p.convert(t)
		for _, objects := range []struct {
			name    string
			objects []string
		}{
			{"all.o", p.probed},
			{"others.o", []string{converted[0], p.probed[1], p.probed[2]}},
			{"some.o", []string{p.probed[0], converted[1], converted[2]}},
		} {
			for _, first := range linkers {
				for _, ld := range linkers {
					values := []string{c.cc.Name, first.Name, objects.name, ld.Name}
					all.Add(strings.Join(values, "/"), values, func(t *testing.T) {
						merged := filepath.Join(t.TempDir(), objects.name)
						if mergeNops(t, first, merged, objects.objects) {
							p.linkMergedNops(t, first, ld, merged)
						}
					})
				}
			}
		}
	}
	all.Run(t)
}

// mergeNops merges objects, and converts the result twice, which is as once. It reports
// whether the linker makes a sound object.
func mergeNops(t *testing.T, first toolchains.Linker, merged string, objects []string) bool {
	t.Helper()
	tools.Must(t, first.Path, append([]string{"-r", "-o", merged}, objects...)...)
	if _, err := tools.Try(converter, "--stapsdt", merged); err != nil {
		if first.Can(toolchains.GroupsWithR) || !strings.Contains(err.Error(), "is a member of group") {
			t.Fatal(err)
		}
		return false // no linker takes it
	}
	before := disk.Read(t, merged)
	tools.Must(t, converter, "--stapsdt", merged)
	if after, err := os.ReadFile(merged); err != nil || !slices.Equal(before, after) {
		t.Errorf("%s changes when it is converted again: %v", filepath.Base(merged), err)
	}
	return true
}

// linkMergedNops links what mergeNops has made, and compares its notes.
func (p program) linkMergedNops(t *testing.T, first, ld toolchains.Linker, merged string) {
	t.Helper()
	out, err := p.tryImage(t, "image", []string{"-pie", "-B" + linker(t, ld)}, merged, p.main)
	if err != nil && !first.Can(toolchains.GroupsWithR) && strings.Contains(err.Error(), "invalid section group") {
		return // as it is unconverted
	}
	expect.OK(t, err)
	checkNops(t, out)
}

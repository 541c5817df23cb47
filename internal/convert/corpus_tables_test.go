package convert

import (
	"debug/elf"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/manifest"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/patch"
)

// withoutStubs drops the symbols that a conversion removes or renames.
func withoutStubs(syms []viewSymbol) []viewSymbol {
	var out []viewSymbol
	for _, s := range syms {
		if (stubID(s.Name) == "" || s.Section != elf.SHN_UNDEF) && !strings.HasPrefix(s.Name, "sdt_") {
			out = append(out, s)
		}
	}
	return out
}

// checkAddrsig: the table of symbols whose addresses matter names the same ones.
func (p *pair) checkAddrsig() {
	for i, s := range p.old.Sections {
		if !isAddrsig(s) {
			continue
		}
		p.seen["addrsig"] = p.seen["addrsig"] || len(p.old.data[i]) > 0
		expect.Equal(p, withoutStubs(p.old.addrsig(p.T, i)), withoutStubs(p.new.addrsig(p.T, i)), "%s", s.Name)
	}
}

// checkGroups: groups keep signature and members, and gain what records their code.
func (p *pair) checkGroups() {
	for i, s := range p.old.Sections {
		if s.Type != elf.SHT_GROUP {
			continue
		}
		p.seen["group"] = true
		now := p.new.Sections[i]
		expect.Equal(p, p.old.symbol(s.Info), p.new.symbol(now.Info), "signature of group %d", i)
		old, new := p.old.groupMembers(i), p.new.groupMembers(i)
		if len(new) < len(old) || !cmp.Equal(old, new[:len(old)]) {
			p.Errorf("members of group %d: %v, want %v and more", i, new, old)
			continue
		}
		for _, m := range new[len(old):] {
			s := p.new.Sections[m]
			name := strings.TrimPrefix(strings.TrimPrefix(s.Name, ".rela"), ".rel")
			if s.Flags&elf.SHF_GROUP == 0 || !strings.Contains(name, "sdt_") && name != ".note.stapsdt" && name != ".note.usdt" && !strings.HasPrefix(name, "my_sites") || int(m) < len(p.old.Sections) {
				p.Errorf("new member of group %d: %s, flags %v", i, s.Name, s.Flags)
			}
		}
	}
}

var (
	symbolic = regexp.MustCompile(`\s*(#.*|//.*|<.*>)\s*`)
	codeLine = regexp.MustCompile(`^\s*([0-9a-f]+):\s+(.*)$`)
)

// instructions disassembles the code of objects: the text of each instruction
// by object, section, in the order of the sections, and address, without the
// names of symbols.
func instructions(t *testing.T, tool string, paths ...string) [][]map[uint64]string {
	t.Helper()
	out := tools.Output(t, tool, append([]string{"-d", "-z"}, paths...)...)
	var all [][]map[uint64]string
	helper := false
	for line := range strings.Lines(out) {
		n := len(all) - 1
		if strings.Contains(line, "file format elf") {
			all = append(all, nil)
		} else if strings.HasPrefix(line, "Disassembly of section ") {
			if helper = strings.Contains(line, ".text.__sdt_"); !helper {
				all[n] = append(all[n], map[uint64]string{})
			}
		} else if m := codeLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil && !helper {
			address := expect.Value(strconv.ParseUint(m[1], 16, 64))(t)
			all[n][len(all[n])-1][address] = symbolic.ReplaceAllString(m[2], "")
		}
	}
	if len(all) != len(paths) {
		t.Fatalf("%s shows %d of %d objects", tool, len(all), len(paths))
	}
	return all
}

// An independent disassembler sees the same instructions everywhere but at the
// sites, and comes out of each site in step.
func TestInstructionsOutsideSitesAreTheSame(t *testing.T) {
	tool := toolchains.LLVM("llvm-objdump")
	if _, err := exec.LookPath(tool); err != nil {
		tool = "llvm-objdump"
	}
	tools.Need(t, tool)
	if !strings.Contains(tools.Output(t, tool, "--version"), "riscv64") {
		t.Skip("the disassembler does not know all machines")
	}
	check := func(t *testing.T, c run) {
		if strings.Contains(c.before, "-bnd.o") {
			return // the prefix belongs to the instruction that takes the call's place
		}
		both := instructions(t, tool, c.before, c.after)
		before, after := both[0], both[1]
		if len(before) == 0 || len(before) != len(after) {
			t.Fatalf("%d sections of code, and %d before", len(after), len(before))
		}
		for i, section := range codeSections(t, c.before) {
			sites := siteBytes(t, c, section)
			for address := range sites {
				delete(before[i], address)
				delete(after[i], address)
			}
			expect.Equal(t, before[i], after[i], "section %d", section)
		}
	}
	chosen := someOfCorpus(t, "", "--stapsdt")
	n := convertedOf(t, chosen[""], nil, check)
	t.Run("--stapsdt", func(t *testing.T) {
		n += convertedOf(t, chosen["--stapsdt"], func(o *patch.Options) { o.Notes = patch.WithNotes }, check)
	})
	if n == 0 {
		t.Error("no object was converted")
	}
}

// someOfCorpus chooses committed objects for each option of a test that takes long, so that
// each source meets each machine, compiler, flag and option that it has objects of.
func someOfCorpus(t *testing.T, options ...string) map[string][]string {
	t.Helper()
	var rows [][]string
	for _, option := range options {
		for _, path := range objects.Paths(t) {
			rows = append(rows, append(objects.Recipe(t, path), option, path))
		}
	}
	all := product.New("source", "machine", "compiler", "flags", "option")
	all.Short = 12
	chosen := map[string][]string{}
	for _, row := range all.Choose(t, rows) {
		option, path := row[4], row[5]
		chosen[option] = append(chosen[option], path)
	}
	return chosen
}

// codeSections lists the sections that a disassembler shows.
func codeSections(t *testing.T, path string) []int {
	v := viewFile(t, path)
	var out []int
	for i, s := range v.Sections {
		if v.executable(i) && s.Size > 0 {
			out = append(out, i)
		}
	}
	return out
}

// siteBytes returns the offsets of all bytes of the sites of a section, as the
// manifest gives them and the relocations confirm.
func siteBytes(t *testing.T, c run, section int) map[uint64]bool {
	t.Helper()
	out := map[uint64]bool{}
	v := viewFile(t, c.before)
	for i, s := range v.Sections {
		if !isRelocSection(s) || int(s.Info) != section {
			continue
		}
		for _, r := range v.relocs(i) {
			if stubID(r.Sym.Name) == "" {
				continue
			}
			if isSlotLoad(v, section, r) {
				out[r.Offset-3] = true // and each call is a site of its own
				for k := range c.object.Sites {
					if s := &c.object.Sites[k]; s.Section == v.Sections[section].Name && s.Relocation == relocName(r) {
						for at := range uint64(len(s.Old)) {
							out[s.Offset+at] = true
						}
					}
				}
				continue
			}
			site := siteOf(c, v.Sections[section].Name, r.Offset)
			if site == nil {
				t.Errorf("no site of the relocation at %#x of section %d", r.Offset, section)
				continue
			}
			for at := range uint64(len(site.Old)) {
				out[site.Offset+at] = true
			}
		}
	}
	return out
}

// isSlotLoad reports whether a relocation is that of a mov from the global offset table.
func isSlotLoad(v *view, section int, r viewReloc) bool {
	code := v.data[section]
	return v.Machine == elf.EM_X86_64 && strings.Contains(relocName(r), "GOTPCREL") && r.Offset >= 3 && code[r.Offset-2] == 0x8b
}

func relocName(r viewReloc) string { return elf.R_X86_64(r.Type).String() }

// loads are the relocations of instructions that load an address for a later call.
var loads = []string{"R_X86_64_64", "R_X86_64_PLTOFF64", "R_X86_64_GOT64"}

// siteOf finds the site around a relocation, or the next one behind that of a load.
func siteOf(c run, section string, off uint64) *manifest.Site {
	var found *manifest.Site
	for i := range c.object.Sites {
		site := &c.object.Sites[i]
		if site.Section != section {
			continue
		}
		if site.Offset <= off && off < site.Offset+uint64(len(site.Old)) {
			return site
		}
		if slices.Contains(loads, site.Relocation) && site.Offset > off && (found == nil || site.Offset < found.Offset) {
			found = site
		}
	}
	return found
}

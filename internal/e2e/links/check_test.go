package links

import (
	"bytes"
	"debug/elf"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// twinSites returns the calls of stubs in an unconverted image, found by objdump.
func twinSites(t *testing.T, m *machine, im *image) []site {
	t.Helper()
	var sites []site
	before := ""
	for _, line := range tools.Lines(t, m.objdump(), "-d", "--no-show-raw-insn", im.path) {
		whole := im.pair(before, line)
		before = line
		if !im.mayCall(whole) {
			continue
		}
		match := branch.FindStringSubmatch(whole)
		if match == nil {
			continue
		}
		stub := stubName.FindStringSubmatch(im.target(t, match[3]))
		if stub == nil {
			continue
		}
		addr := expect.Value(strconv.ParseUint(match[1], 16, 64))(t, "%s: %q", im.path, line)
		s := site{kind: stub[1], id: stub[2], addr: addr}
		im.locate(t, &s)
		// The record names the return, behind the inverted branch.
		s.skip = inverted(m, match[2], s.kind)
		s.addr += s.skip
		s.offset += s.skip
		sites = append(sites, s)
	}
	return sites
}

// mayCall is whether a line may be a branch to a stub, as few lines of a program are: its
// label has the stub's name, or it goes through a slot, or through code with any label.
func (im *image) mayCall(line string) bool {
	_, instruction, _ := strings.Cut(line, ":")
	instruction = strings.TrimLeft(instruction, " \t")
	if instruction == "" || !strings.ContainsRune("abcdjnr", rune(instruction[0])) {
		return false
	}
	return strings.Contains(instruction, "__dtrace_") || strings.Contains(instruction, "*") ||
		im.file.Machine == elf.EM_PPC64 && strings.Contains(instruction, "<")
}

// pair returns a line for two, where the first begins the distance of a jump that the
// second ends: objdump shows no target of pcaddu18i and jirl. Others stay as they are.
func (im *image) pair(first, second string) string {
	if !strings.Contains(first, "pcaddu18i") {
		return second
	}
	high, low := pcaddu18i.FindStringSubmatch(first), jirl.FindStringSubmatch(second)
	if high == nil || low == nil || high[2] != low[1] {
		return second
	}
	at, _ := strconv.ParseUint(high[1], 16, 64)
	pages, _ := strconv.ParseInt(high[3], 10, 64)
	words, _ := strconv.ParseInt(low[2], 10, 64)
	for _, name := range im.at(at + uint64(pages<<18+words)) {
		if stubName.MatchString(name) {
			return fmt.Sprintf("%s:\tbl\t<%s>", high[1], name)
		}
	}
	return second
}

var (
	// branch matches what names a target: address, instruction without its
	// prefixes, operands.
	branch = regexp.MustCompile(
		`^ *([0-9a-f]+):\s+(?:(?:addr16|addr32|bnd|notrack|data16|rex) )*(call|j[a-z]*|b[a-z]*(?:\.[a-z]+)?)\s+(.*<.*>|\*-?0x[0-9a-f]+\(%e[a-z]+\))(?:\s+//.*)?$`)
	pcaddu18i = regexp.MustCompile(`^ *([0-9a-f]+):\s+pcaddu18i\s+(\$\w+), (-?\d+)$`)
	jirl      = regexp.MustCompile(`:\s+(?:jr|jirl\s+\$\w+,)\s+(\$\w+)(?:, (-?\d+))?$`)
	stubName  = regexp.MustCompile(`^__dtrace_(probe|isenabled)_(\w+)$`)
	lastLabel = regexp.MustCompile(`<([^<>]*)>$`)
	// viaCode matches what linkers put between, of which they make a name from another.
	viaCode = regexp.MustCompile(`[@$](?:plt|thunk)$|^__(.+)_from_(?:arm|thumb)$|^__(?:ARM|Thumb)[vV]7(?:ABS|PI)LongThunk_`)
	viaGOT  = regexp.MustCompile(`^\*0x[0-9a-f]+\(%rip\)\s+# ([0-9a-f]+) <`)
	fromGOT = regexp.MustCompile(`^\*(-?0x[0-9a-f]+)\(%e`) // the table's address is in a register
)

// target returns the name that an instruction branches to, or the empty string.
func (im *image) target(t *testing.T, operands string) string {
	t.Helper()
	if match := viaGOT.FindStringSubmatch(operands); match != nil {
		// Some linkers leave calls through the GOT as they are.
		slot := expect.Value(strconv.ParseUint(match[1], 16, 64))(t, "%s: %q", im.path, operands)
		return im.stubAt(t, slot)
	}
	if match := fromGOT.FindStringSubmatch(operands); match != nil {
		from := expect.Value(strconv.ParseInt(match[1], 0, 64))(t, "%s: %q", im.path, operands)
		for _, s := range im.file.Sections { // mold counts from .got, others from .got.plt if there is one
			if slot := s.Addr + uint64(from); strings.HasPrefix(s.Name, ".got") && im.inGOT(slot) {
				if name := im.stubAt(t, slot); name != "" {
					return name
				}
			}
		}
		return ""
	}
	if name := im.throughTOC(t, operands); name != "" {
		return name
	}
	// objdump puts a dot before the names of functions whose symbols stand for descriptors.
	return viaCode.ReplaceAllString(strings.TrimPrefix(lastLabel.FindStringSubmatch(operands)[1], "."), "$1")
}

// stubAt returns the name of the stub whose address is in a slot, or the empty string.
func (im *image) stubAt(t *testing.T, slot uint64) string {
	t.Helper()
	for _, name := range im.at(im.word(t, slot).value) {
		if stubName.MatchString(name) {
			return name
		}
	}
	return ""
}

func (im *image) inGOT(slot uint64) bool {
	return slices.ContainsFunc(im.file.Sections, func(s *elf.Section) bool {
		return strings.HasPrefix(s.Name, ".got") && slot >= s.Addr && slot < s.Addr+s.Size
	})
}

// inverted returns the length of the inverted jump that a site begins with which was a
// conditional one, 0 where there is none.
func inverted(m *machine, instruction, kind string) uint64 {
	switch {
	case m.x86() && instruction[0] == 'j' && instruction != "jmp":
		return 2
	case m.Machine == toolchains.S390X && strings.HasPrefix(instruction, "jg") && instruction != "jg" && kind == "probe":
		return 4
	}
	return 0
}

// compareSites fails a test where records and the twin's calls differ, as
// multisets; the places within functions count where the machine is exact.
func compareSites(t *testing.T, m *machine, got, want []site) {
	t.Helper()
	missing, extra := differences(m, got, want)
	for _, s := range missing {
		t.Errorf("no record of %s", s)
	}
	for _, s := range extra {
		t.Errorf("a record too many of %s", s)
	}
	if len(want) == 0 {
		t.Error("the twin has no sites")
	}
}

// differences lists what got lacks and what it has too much.
func differences(m *machine, got, want []site) (missing, extra []string) {
	count := map[string]int{}
	for _, s := range want {
		count[s.key(m)]++
	}
	for _, s := range got {
		count[s.key(m)]--
	}
	for k, n := range count {
		for ; n > 0; n-- {
			missing = append(missing, k)
		}
		for ; n < 0; n++ {
			extra = append(extra, k)
		}
	}
	slices.Sort(missing)
	slices.Sort(extra)
	return missing, extra
}

// key returns what a site is compared by.
func (s site) key(m *machine) string {
	if !m.exact {
		s.offset = 0
	}
	return s.String()
}

// checkNames looks for names of stubs in the string tables, in which no one may be left.
func checkNames(t *testing.T, im *image) {
	t.Helper()
	for _, s := range im.file.Sections {
		if s.Type != elf.SHT_STRTAB {
			continue
		}
		for name := range bytes.SplitSeq(expect.Value(s.Data())(t, "%s: %s", im.path, s.Name), []byte{0}) {
			if bytes.Contains(name, []byte("__dtrace_")) {
				t.Errorf("%s: %s has %q", im.path, s.Name, name)
			}
		}
	}
}

// checkResolvers asks addr2line and objdump in which function a site is, and
// what stands just after it: no label of a record may pass for a function. addr2line is the
// machine's, which knows of addresses that have bits besides.
func checkResolvers(t *testing.T, m *machine, im *image, sites []site) {
	t.Helper()
	args := []string{"-f", "-e", im.path}
	var where []uint64
	for _, s := range sites {
		for _, addr := range []uint64{s.addr, s.addr + 1, s.addr + 4} {
			where = append(where, addr)
			args = append(args, "0x"+strconv.FormatUint(addr, 16))
		}
	}
	for i, name := range tools.Lines(t, m.addr2line(), args...) {
		if i%2 == 1 {
			continue // The source line.
		}
		names, _ := im.around(where[i/2])
		own, _ := im.around(sites[i/2/3].addr)
		// What stands behind the function may be a C library's, where tools do not agree
		// on the names of what is resolved when the program starts.
		// And addr2line knows no symbols that stand for descriptors.
		known := m.exact && im.file.Section(".opd") == nil && names != nil && slices.Equal(names, own)
		if strings.HasPrefix(name, ".Lsdt_") || known && !slices.Contains(names, name) {
			t.Errorf("%s: addr2line calls %#x %q, not %q", im.path, where[i/2], name, names)
			return
		}
	}
	// The labels stand at sites: what is not between them need not be disassembled.
	slices.Sort(where)
	args = []string{"-d", "--no-show-raw-insn", fmt.Sprintf("--start-address=%#x", where[0]), fmt.Sprintf("--stop-address=%#x", where[len(where)-1]+16), im.path}
	for _, line := range tools.Lines(t, m.objdump(), args...) {
		if strings.Contains(line, "<.Lsdt_") {
			t.Errorf("%s: objdump shows %q", im.path, line)
			return
		}
	}
}

// checkImage returns every check of a converted image whose twin has the sites want.
func checkImage(t *testing.T, m *machine, l layout, path string, want []site) []site {
	t.Helper()
	im := openImage(t, path)
	got := im.records(t, l)
	compareSites(t, m, got, want)
	checkNames(t, im)
	checkResolvers(t, m, im, got)
	checkListing(t, im, got)
	return got
}

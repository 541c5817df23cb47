package lines_test

import (
	"debug/elf"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

func compare(t *testing.T, b build, s *subject) {
	t.Helper()
	known := 0
	for section, places := range s.instructions(t, b.machine.Tool("objdump")) {
		for i, told := range b.tell(t, s, section, places) {
			p := places[i]
			got := s.frames(p)
			if got == "" && slices.ContainsFunc(told, func(a string) bool { return strings.HasSuffix(a, " ?\n") }) {
				continue
			}
			known++
			if !slices.ContainsFunc(told, func(a string) bool { return b.same(s, got, a) }) {
				t.Errorf("%s %s+%#x is\n%swant one of\n%s", filepath.Base(s.path), section, p.offset, got, strings.Join(told, "\n"))
			}
		}
	}
	if known < 20 {
		t.Errorf("%s: only %d instructions have lines", s.path, known)
	}
}

// tell asks the tools. Only that of binutils knows what an offset of a section
// of an object is, though it is not right about all of it.
func (b build) tell(t *testing.T, s *subject, section string, places []place) [][]string {
	t.Helper()
	askable := []string{b.machine.Tool("addr2line"), "eu-addr2line", "llvm-addr2line-19"}
	if s.o.Type == elf.ET_REL {
		askable = askable[:1]
	} else {
		section = ""
	}
	told := make([][]string, len(places))
	for _, tool := range askable {
		for i, answer := range addr2line(t, tool, s.path, section, places) {
			told[i] = append(told[i], answer)
		}
	}
	return told
}

var (
	file     = regexp.MustCompile(`(?m) .*:`)
	outmost  = regexp.MustCompile(`\S+( \S+\n)$`)
	nameless = regexp.MustCompile(`_Z\S+( \S+\n)$`)
)

// same compares what the table says with what a tool does, but for these:
//
//   - What DWARF gives no linkage name, tools name by its symbol; and so they do
//     with what lies between functions.
//   - In objects binutils 2.40 finds the wrong file of DWARF 5, none of 64-bit
//     DWARF 5, and too few functions of C++.
func (b build) same(s *subject, got, told string) bool {
	if strings.HasPrefix(got, "?? ") || nameless.MatchString(told) && !nameless.MatchString(got) {
		got, told = outmost.ReplaceAllString(got, "?$1"), outmost.ReplaceAllString(told, "?$1")
	}
	if s.o.Type == elf.ET_REL && b.cxx {
		got, told = firstLine(got), firstLine(told)
	}
	if s.o.Type == elf.ET_REL {
		if strings.HasSuffix(told, " ?\n") && strings.Contains(b.flags, "-gdwarf64") {
			return true
		}
		got, told = file.ReplaceAllString(got, " "), file.ReplaceAllString(told, " ")
	}
	return got == told
}

// firstLine returns where the innermost frame is.
func firstLine(frames string) string {
	_, rest, _ := strings.Cut(frames, " ")
	line, _, _ := strings.Cut(rest, "\n")
	return " " + line
}

// compareFunctions compares an object with the image that it was linked into, by
// functions of the same name and size. Where linkers relax code there are none.
func compareFunctions(t *testing.T, object, image *subject) {
	t.Helper()
	linked := functions(t, image)
	for name, f := range functions(t, object) {
		g, ok := linked[name]
		if !ok || g.Size != f.Size {
			continue
		}
		for off := range f.Size {
			got, want := object.frames(place{f.Section, f.Value + off}), image.frames(place{0, g.Value + off})
			expect.Equal(t, want, got, "%s: %s+%#x", filepath.Base(object.path), name, off)
		}
	}
}

func functions(t *testing.T, s *subject) map[string]elfreloc.Symbol {
	t.Helper()
	syms := expect.Value(s.o.Symbols())(t)
	found := make(map[string]elfreloc.Symbol)
	for i := range syms.Len() {
		if sym := syms.At(i); sym.Type == elf.STT_FUNC && sym.Defined() {
			sym.Value &^= machines.Conventions(s.o.ABI()).Mode
			found[sym.Name] = sym
		}
	}
	return found
}

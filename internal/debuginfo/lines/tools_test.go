package lines_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

func run(t testing.TB, directory, tool string, args ...string) string {
	t.Helper()
	return runWith(t, directory, "", tool, args...)
}

func runWith(t testing.TB, directory, stdin, tool string, args ...string) string {
	t.Helper()
	// eu-addr2line fails for each address that it does not know.
	c := tools.Command{Directory: directory, Stdin: stdin, Env: []string{"LC_ALL=C", "DEBUGINFOD_URLS="}, AnyStatus: tool == "eu-addr2line"}
	return c.Output(t, tool, args...)
}

// subject is a file whose lines are looked up.
type subject struct {
	path  string
	o     *elfreloc.Object
	table *lines.Table
}

func open(t testing.TB, path string) *subject {
	t.Helper()
	data := disk.Read(t, path)
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), filepath.Base(path)))(t)
	table := expect.Value(lines.New(o, machines.Lookup(o.ABI())))(t)
	return &subject{path, o, table}
}

// place is an instruction: an address, or an offset of a section.
type place struct {
	section int // 0 in images
	offset  uint64
}

var (
	sectionTitle = regexp.MustCompile(`^Disassembly of section (.*):$`)
	instruction  = regexp.MustCompile(`^\s*([0-9a-f]+):\t`)
)

// instructions returns all of a file, by section.
func (s *subject) instructions(t testing.TB, objdump string) map[string][]place {
	t.Helper()
	found := make(map[string][]place)
	section, index := "", 0
	for line := range strings.Lines(run(t, "", objdump, "-dw", s.path)) {
		if m := sectionTitle.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			if section = m[1]; s.o.Type == elf.ET_REL {
				index = objects.Section(t, s.o, section)
			}
		} else if m := instruction.FindStringSubmatch(line); m != nil {
			offset := expect.Value(strconv.ParseUint(m[1], 16, 64))(t)
			found[section] = append(found[section], place{index, offset})
		}
	}
	return found
}

var remark = regexp.MustCompile(` \((discriminator [0-9]+|inlined by)\)`)

// addr2line returns what a tool says of places: of each a frame on a line, as
// "function file:line", "?" for what it does not know.
func addr2line(t testing.TB, tool, file, section string, places []place) []string {
	t.Helper()
	args := []string{"-a", "-i", "-f", "-e", file}
	if section != "" {
		args = append(args, "-j", section)
	}
	var stdin strings.Builder
	for _, p := range places {
		fmt.Fprintf(&stdin, "%#x\n", p.offset)
	}
	var all []string
	var frames, function string
	for line := range strings.Lines(runWith(t, "", stdin.String(), tool, args...)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "0x"):
			all = append(all, "")
			frames, function = "", ""
		case function == "":
			function, _, _ = strings.Cut(line, " inlined at ")
		default:
			frames = function + " " + source(remark.ReplaceAllString(line, "")) + "\n"
			all[len(all)-1] += frames
			function = ""
		}
	}
	if len(all) != len(places) {
		t.Fatalf("%s answered %d of %d", tool, len(all), len(places))
	}
	return all
}

// source makes file:line the same from each tool, and "?" when it is not
// known.
func source(s string) string {
	file, line, ok := strings.Cut(s, ":")
	if !ok || strings.HasPrefix(file, "?") || line == "0" || strings.HasPrefix(line, "?") {
		return "?"
	}
	line, _, _ = strings.Cut(line, ":") // a column
	return path.Clean(file) + ":" + line
}

// frames returns what the table says of a place, in the form of addr2line.
func (s *subject) frames(p place) string {
	var b strings.Builder
	for _, f := range s.table.Inlines(p.section, p.offset) {
		function, at := f.Function, "?"
		if function == "" {
			function = "??"
		}
		if f.Line != 0 {
			at = path.Clean(f.File) + ":" + strconv.Itoa(f.Line)
		}
		fmt.Fprintf(&b, "%s %s\n", function, at)
	}
	return b.String()
}

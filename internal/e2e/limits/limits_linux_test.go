package limits

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/tools"
)

// program is the program under test.
var program string

func TestMain(m *testing.M) {
	tools.Main(m, `TestCosts`, &program, nil)
}

// Sizes of files in bytes: each attack is made with the first size and with ten times it.
// With SDTCONVERT_ATTACK the larger is 100 MB.
const (
	usualSize  = 50_000
	attackSize = 10_000_000
	growth     = 10
)

// bounds are what commands may take, as docs/limits.md says: memory in times the size of
// the file, besides base.
var bounds = map[string]int64{
	"convert": 100, "inspect": 120, "list": 100, "check": 150, "check --require": 250, "stubs": 150, "sites": 100, "provider": 220, "resolve": 100, "ld": 300,
}

const (
	base         = 160 << 20          // bytes of memory that any command may take
	steeper      = 4                  // how many times as steep as the file the work may grow
	littleWork   = 5 * time.Second    // of the processors, which is none
	mostWork     = 600                // seconds of the processors, with any file
	longestRun   = 20 * time.Minute   // with the largest files
	printedShare = 1000               // bytes printed or written for each of the file
	maxMessage   = growth * usualSize // bytes of output that are kept
)

// cost is what a run has cost.
type cost struct {
	memory  int64         // bytes, the peak
	work    time.Duration // of the processors
	printed int64         // bytes
	text    string        // its beginning
}

// output counts what is printed, and keeps its beginning.
type output struct {
	size int64
	head bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.size += int64(len(b))
	o.head.Write(b[:min(len(b), max(0, maxMessage-o.head.Len()))])
	return len(b), nil
}

// measure runs the program, which has to end by itself with a status of its own, before a time is over.
func measure(t *testing.T, directory string, args []string, most int64, longest time.Duration) cost {
	t.Helper()
	var out output
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -t "$1"; shift; exec "$@"`, "sh", fmt.Sprint(mostWork), program}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = directory, &out, &out
	expect.OK(t, cmd.Start())
	done := make(chan bool)
	go guard(cmd.Process, 2*most, longest, done)
	err := cmd.Wait()
	close(done)
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || !exit.Exited() || exit.ExitCode() > 3) || bytes.Contains(out.head.Bytes(), []byte("goroutine ")) {
		t.Errorf("%q: %v: %.500s", args, err, out.head.Bytes())
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{int64(usage.Maxrss) << 10, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), out.size, out.head.String()}
}

// guard kills a process that takes far too much memory, before the machine suffers, or too long.
func guard(p *os.Process, most int64, longest time.Duration, done <-chan bool) {
	end := time.After(longest)
	for {
		select {
		case <-done:
			return
		case <-end:
			p.Kill()
		case <-time.After(50 * time.Millisecond):
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Pid))
			var all, resident int64
			if fmt.Sscan(string(text), &all, &resident); resident*int64(os.Getpagesize()) > most {
				p.Kill()
			}
		}
	}
}

// write makes the file of an attack, and what the commands read besides. It returns the
// size of the file.
func (a *attack) write(t *testing.T, directory string, n int) int64 {
	t.Helper()
	data := a.make(n)
	tiny := object(calls(1), callsOf(1, 2, false), one(5, stub)).bytes()
	for name, data := range map[string][]byte{
		"file": data, "tiny.o": tiny, "shop.d": []byte("provider shop { probe placed(); };\n"), "in": []byte("@file @file\n"),
	} {
		disk.Write(t, filepath.Join(directory, name), data)
	}
	return int64(len(data))
}

// run measures a command with the file of a directory.
func (a *attack) run(t *testing.T, directory, command string, size int64) cost {
	t.Helper()
	args := strings.Fields(strings.NewReplacer("FILE", "file", "OUT", "out").Replace(command))
	bound := bounds[args[0]]
	if flagged, ok := bounds[args[0]+" "+args[1]]; ok {
		bound = flagged
	}
	most := base + bound*size
	c := measure(t, directory, args, most, longestRun)
	out := filepath.Join(directory, "out")
	if info, err := os.Stat(out); err == nil {
		c.printed += info.Size()
		expect.OK(t, os.Remove(out))
	}
	if c.memory > most {
		t.Errorf("%s: %d MB of memory for a file of %d KB, want at most %d", command, c.memory/1e6, size/1e3, most/1e6)
	}
	if c.printed > base+printedShare*size {
		t.Errorf("%s: %d MB of output for a file of %d KB", command, c.printed/1e6, size/1e3)
	}
	return c
}

// compare measures all commands with an attack of two sizes.
func (a *attack) compare(t *testing.T, n int) {
	small, large := t.TempDir(), t.TempDir()
	smallSize, largeSize := a.write(t, small, n), a.write(t, large, growth*n)
	debug.FreeOSMemory() // which a process inherits from this one, as its peak
	for _, command := range a.commands {
		before, after := a.run(t, small, command, smallSize), a.run(t, large, command, largeSize)
		if after.work > littleWork+steeper*growth*before.work {
			t.Errorf("%s: %v of work for %d KB, and %v for %d KB", command, before.work, smallSize/1e3, after.work, largeSize/1e3)
		}
		t.Logf("%s: %d KB: %d MB, %v, %d KB of output", command, largeSize/1e3, after.memory/1e6, after.work, after.printed/1e3)
	}
}

// Whatever is in a file, the memory that a command takes is bounded by its size, and the
// work grows as that does.
func TestCostsAreBoundedBySize(t *testing.T) {
	tools.DependOnTree(t)
	n, full := usualSize, os.Getenv("SDTCONVERT_ATTACK") != ""
	if full {
		n = attackSize
	}
	all := append(attacks[:len(attacks):len(attacks)], textAttacks...)
	runs := 0
	for _, a := range product.Few(t.Name(), all) {
		runs += 2 * len(a.commands)
		t.Run(a.name, func(t *testing.T) {
			if !full {
				t.Parallel() // of the largest files one at a time fits into memory
			}
			a.compare(t, n)
		})
	}
	t.Cleanup(func() { t.Logf("%d runs with %d kinds of files, the largest of %d KB", runs, len(all), growth*n/1000) })
}

// records has n/16 records, each of another site, all of one probe.
func records(n int) []byte {
	count := n / 17
	s := newSymbols()
	s.add("main", global|function, 2, 0x1000, uint64(count))
	s.add("sdt_shop___placed", global|byte(elf.STT_OBJECT), 3, dataAddress, 8)
	return recorded(count, s, func(int) uint64 { return dataAddress }).bytes()
}

// recorded returns an image of records, at each of its bytes of code.
func recorded(count int, s *symbols, probe func(i int) uint64) *file {
	f := image(max(count, 1000), s)
	le := binary.LittleEndian
	data := make([]byte, 0, 16*count)
	for i := range count {
		data = le.AppendUint64(data, probe(i))
		data = le.AppendUint64(data, uint64(0x1000+i))
	}
	f.add(section{name: ".data", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, addr: dataAddress, data: make([]byte, 8*count+8)})
	f.add(section{name: "sdt_instances_set", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, addr: 0x50000000, data: data})
	return f
}

// dataAddress is where probe objects are.
const dataAddress = 0x40000000

// recordedProbes has a probe for each record, with names that are ends of one.
func recordedProbes(n int) []byte {
	const prefix = "sdt_"
	count := n / (17 + len(prefix) + elf.Sym64Size)
	s := newSymbols()
	s.names = []byte("\x00" + strings.Repeat(prefix, count) + "end\x00")
	for i := range count {
		s.named(1+i*len(prefix), global|byte(elf.STT_OBJECT), 3, uint64(dataAddress+8*i), 8)
	}
	return recorded(count, s, func(i int) uint64 { return uint64(dataAddress + 8*i) }).bytes()
}

// namedFunctions has a function for each record, with names that are ends of one.
func namedFunctions(n int) []byte {
	count := n / (17 + 1 + elf.Sym64Size)
	s := newSymbols()
	s.names = []byte("\x00" + strings.Repeat("f", count) + "\x00")
	for i := range count {
		s.named(1+i, global|function, 2, uint64(0x1000+i), 1)
	}
	s.add("sdt_shop___placed", global|byte(elf.STT_OBJECT), 3, dataAddress, 8)
	return recorded(count, s, func(int) uint64 { return dataAddress }).bytes()
}

// longFunction has one function with a long name that holds all records.
func longFunction(n int) []byte {
	count := n / 2 / 17
	s := newSymbols()
	s.add(strings.Repeat("f", min(n/2, 1<<20-1)), global|function, 2, 0x1000, uint64(count))
	s.add("sdt_shop___placed", global|byte(elf.STT_OBJECT), 3, dataAddress, 8)
	return recorded(count, s, func(int) uint64 { return dataAddress }).bytes()
}

// debugged returns an object or image with a few sites and debug information.
func debugged(kind elf.Type, info, abbrev, line []byte) []byte {
	var f *file
	if kind == elf.ET_REL {
		f = object(calls(8), callsOf(8, 2, false), one(40, stub))
	} else {
		s := newSymbols()
		s.add("main", global|function, 2, 0x1000, 1000)
		s.add("sdt_shop___placed", global|byte(elf.STT_OBJECT), 3, dataAddress, 8)
		f = recorded(8, s, func(int) uint64 { return dataAddress })
	}
	f.add(section{name: ".debug_info", kind: elf.SHT_PROGBITS, data: info})
	f.add(section{name: ".debug_abbrev", kind: elf.SHT_PROGBITS, data: abbrev})
	f.add(section{name: ".debug_line", kind: elf.SHT_PROGBITS, data: line})
	return f.bytes()
}

// Tags, attributes and forms of DWARF 4.
const (
	tagCompileUnit, tagSubprogram, tagInlined, tagBlock, tagPointer, tagParameter = 0x11, 0x2e, 0x1d, 0x0b, 0x0f, 0x05
	atName, atStmtList, atLowPC, atHighPC, atType, atOrigin, atExternal           = 0x03, 0x10, 0x11, 0x12, 0x49, 0x31, 0x3f
	formAddr, formData4, formString, formSecOffset, formRef4, formPresent         = 0x01, 0x06, 0x08, 0x17, 0x13, 0x19
)

// abbrev returns an abbreviation: pairs of attribute and form follow.
func abbrev(code, tag byte, children bool, pairs ...byte) []byte {
	b := []byte{code, tag, 0}
	if children {
		b[2] = 1
	}
	return append(append(b, pairs...), 0, 0)
}

// unit returns a compile unit of entries, the first of which is of code 1: with a line
// table at 0, and addresses from 0x1000 on.
func unit(entries []byte) []byte {
	le := binary.LittleEndian
	b := []byte{1}
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, 0x1000)
	b = le.AppendUint32(b, 1<<20)
	b = append(b, entries...)
	head := le.AppendUint32(nil, uint32(len(b)+7))
	head = append(head, 4, 0, 0, 0, 0, 0, 8)
	return append(head, b...)
}

func unitAbbrev(children bool) []byte {
	return abbrev(1, tagCompileUnit, children, atStmtList, formSecOffset, atLowPC, formAddr, atHighPC, formData4)
}

// lineTable returns a line table of n rows of one byte each.
func lineTable(n int) []byte {
	le := binary.LittleEndian
	header := []byte{1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 'a', '.', 'c', 0, 0, 0, 0, 0}
	program := []byte{0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0}
	for range n {
		program = append(program, 0x20)
	}
	program = append(program, 2, 1, 0, 1, 1)
	b := le.AppendUint32(nil, uint32(2+4+len(header)+len(program)))
	b = le.AppendUint16(b, 4)
	b = le.AppendUint32(b, uint32(len(header)))
	return append(append(b, header...), program...)
}

// rows returns a line table of many rows.
func rows(kind elf.Type) func(n int) []byte {
	return func(n int) []byte { return debugged(kind, unit(nil), unitAbbrev(false), lineTable(n)) }
}

// units share a line table.
func units(kind elf.Type) func(n int) []byte {
	return func(n int) []byte {
		one := unit(nil)
		return debugged(kind, []byte(strings.Repeat(string(one), n/2/len(one))), unitAbbrev(false), lineTable(n/2))
	}
}

// nested has entries of one byte that lie in each other.
func nested(kind elf.Type, tag byte) func(n int) []byte {
	return func(n int) []byte {
		table := append(unitAbbrev(true), abbrev(2, tag, true)...)
		return debugged(kind, unit([]byte(strings.Repeat("\x02", n))), append(table, 0), lineTable(8))
	}
}

// inlined are functions that cover all code, in each other.
func inlined(kind elf.Type) func(n int) []byte {
	return func(n int) []byte {
		table := append(unitAbbrev(true), abbrev(2, tagSubprogram, true, atLowPC, formAddr, atHighPC, formData4, atName, formString)...)
		table = append(table, abbrev(3, tagInlined, true, atLowPC, formAddr, atHighPC, formData4, atOrigin, formRef4)...)
		le := binary.LittleEndian
		entry := func(code byte) []byte {
			return le.AppendUint32(le.AppendUint64([]byte{code}, 0x1000), 1<<20)
		}
		b := append(entry(2), "f\x00"...)
		origin := uint32(11 + 17)
		for len(b) < n {
			b = le.AppendUint32(append(b, entry(3)...), origin)
		}
		return debugged(kind, unit(b), append(table, 0), lineTable(8))
	}
}

// flat is inlined, of functions beside each other.
func flat(kind elf.Type) func(n int) []byte {
	return func(n int) []byte {
		table := append(unitAbbrev(true), abbrev(2, tagSubprogram, false, atLowPC, formAddr, atHighPC, formData4, atName, formString)...)
		le := binary.LittleEndian
		var b []byte
		for i := 0; len(b) < n; i++ {
			b = le.AppendUint32(le.AppendUint64(append(b, 2), uint64(0x1000+i%500)), uint32(1<<20-i%1000))
			b = append(b, fmt.Sprintf("f%x\x00", i)...)
		}
		return debugged(kind, unit(b), append(table, 0), lineTable(8))
	}
}

// typed are declarations of the stub whose parameter is a chain of types.
func typed(n int) []byte {
	table := append(unitAbbrev(true), abbrev(2, tagSubprogram, true, atName, formString, atExternal, formPresent)...)
	table = append(table, abbrev(3, tagParameter, false, atType, formRef4)...)
	table = append(table, abbrev(4, tagPointer, false, atType, formRef4)...)
	table = append(table, abbrev(5, 0x16, false, atType, formRef4)...) // DW_TAG_typedef
	le := binary.LittleEndian
	var b []byte
	const start = 11 + 17
	for len(b) < n/2 { // each typedef is of the next
		b = le.AppendUint32(append(b, 5), uint32(start+len(b)+5))
	}
	b = append(b, 4, start, 0, 0, 0)
	for len(b) < n {
		b = append(append(b, 2), stub+"\x00"...)
		for range 10 {
			b = le.AppendUint32(append(b, 3), start)
		}
		b = append(b, 0)
	}
	return debugged(elf.ET_REL, unit(b), append(table, 0), lineTable(8))
}

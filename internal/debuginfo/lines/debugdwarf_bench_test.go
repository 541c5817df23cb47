package lines_test

import (
	"bytes"
	"debug/dwarf"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// BenchmarkRows reads every line table of the image that LINES_IMAGE names, here
// and with debug/dwarf. docs/results/decisions.md has the numbers.
func BenchmarkRows(b *testing.B) {
	compareReaders(b, (*lines.Table).ReadRows, func(b *testing.B, data *dwarf.Data, unit *dwarf.Entry) (n int) {
		r, err := data.LineReader(unit)
		if err != nil || r == nil {
			return 0
		}
		for {
			var row dwarf.LineEntry
			if err := r.Next(&row); errors.Is(err, io.EOF) {
				return n
			} else if err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
}

// BenchmarkEntries reads all entries of all units.
func BenchmarkEntries(b *testing.B) {
	compareReaders(b, (*lines.Table).ReadEntries, func(b *testing.B, data *dwarf.Data, unit *dwarf.Entry) (n int) {
		r := data.Reader()
		r.Seek(unit.Offset)
		for depth := 0; ; {
			entry, err := r.Next()
			if err != nil || entry == nil {
				b.Fatal(entry, err)
			}
			n++
			if entry.Tag == 0 {
				depth--
			} else if entry.Children {
				depth++
			}
			if depth == 0 {
				return n
			}
		}
	})
}

// compareReaders measures both, on a file that is in memory.
func compareReaders(b *testing.B, ours func(*lines.Table) int, theirs func(*testing.B, *dwarf.Data, *dwarf.Entry) int) {
	name := os.Getenv("LINES_IMAGE")
	if name == "" {
		b.Skip("LINES_IMAGE is not set")
	}
	file := disk.Read(b, name)
	b.Run("lines", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			o, err := elfreloc.Open(bytes.NewReader(file), int64(len(file)), name)
			expect.OK(b, err)
			table, err := lines.New(o, nil)
			expect.OK(b, err)
			n = ours(table)
		}
		b.ReportMetric(float64(n), "found")
	})
	b.Run("debug-dwarf", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n = 0
			data := openDebugDWARF(b, file)
			for r := data.Reader(); ; r.SkipChildren() {
				unit, err := r.Next()
				expect.OK(b, err)
				if unit == nil {
					break
				}
				n += theirs(b, data, unit)
			}
		}
		b.ReportMetric(float64(n), "found")
	})
}

func openDebugDWARF(b *testing.B, file []byte) *dwarf.Data {
	data, err := disk.ELF(b, file).DWARF()
	expect.OK(b, err)
	return data
}

// BenchmarkOverlap opens an image of a few hundred KiB in which each unit's table
// of abbreviations holds those of all units behind it. debug/dwarf decodes and
// keeps each of them.
func BenchmarkOverlap(b *testing.B) {
	info, abbrevs := overlappingAbbrevs(10_000)
	sections := map[string][]byte{".debug_info": info, ".debug_abbrev": abbrevs, ".debug_line": {0}}
	file := image(b, sections)
	b.Run("lines", func(b *testing.B) {
		for b.Loop() {
			if _, err := openDebug(b, sections); err == nil {
				b.Fatal("no error")
			}
		}
	})
	b.Run("debug-dwarf", func(b *testing.B) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for b.Loop() {
			data := openDebugDWARF(b, file)
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(data)
		}
		b.ReportMetric(float64(after.Sys-before.Sys)/(1<<20), "MiB")
	})
}

package lines_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// BenchmarkImage looks up random addresses of the functions of the image that
// LINES_IMAGE names.
func BenchmarkImage(b *testing.B) {
	name := os.Getenv("LINES_IMAGE")
	if name == "" {
		b.Skip("LINES_IMAGE is not set")
	}
	const count = 1_000_000
	for range b.N {
		f, err := os.Open(name)
		expect.OK(b, err)
		info, err := f.Stat()
		expect.OK(b, err)
		o, err := elfreloc.Open(f, info.Size(), name)
		expect.OK(b, err)
		code := o.Sections[objects.Section(b, o, ".text")]
		r := rand.New(rand.NewPCG(1, 2))
		section := 0
		if o.Type == 1 {
			section = objects.Section(b, o, ".text")
		}
		start := time.Now()
		lap := func(unit string) {
			b.ReportMetric(time.Since(start).Seconds(), unit)
			start = time.Now()
		}
		table, err := lines.New(o, machines.Lookup(o.ABI()))
		expect.OK(b, err)
		lap("s/New")
		known := 0
		for range count {
			if _, line := table.Source(section, code.Addr+r.Uint64N(code.Size)); line != 0 {
				known++
			}
		}
		lap("s/Msource")
		b.ReportMetric(float64(known), "known")
		for range count {
			table.Inlines(section, code.Addr+r.Uint64N(code.Size))
		}
		lap("s/Minlines")
		expect.OK(b, table.Err())
		f.Close()
	}
}

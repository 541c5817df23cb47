package resolve_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/resolve"
)

// manyFunctions is how many functions the image of the benchmarks has.
const manyFunctions = 1 << 20

// manyImage links an image of a million functions, half of them static, with
// unwind tables, and in an order that is not the one of their names.
func manyImage(b *testing.B) string {
	b.Helper()
	tools.Need(b, "as", "ld", "nm")
	directory := b.TempDir()
	const parts = 16
	args := []string{"-shared", "-o", filepath.Join(directory, "image")}
	for part := range parts {
		var s strings.Builder
		fmt.Fprintf(&s, ".file \"part%d.c\"\n", part)
		for i := range manyFunctions / parts {
			name := fmt.Sprintf("function_%08x_of_part_%d", uint32(i*parts+part)*2654435761, part)
			if i%2 == 0 {
				fmt.Fprintf(&s, ".globl %s\n.hidden %s\n", name, name)
			}
			fmt.Fprintf(&s, ".type %s, %%function\n%s: .cfi_startproc\nret\nnop\nnop\nnop\nnop\n.cfi_endproc\n.size %s, .-%s\n.balign 8\n", name, name, name, name)
		}
		object := filepath.Join(directory, fmt.Sprintf("part%d.o", part))
		disk.Write(b, object+".s", s.String())
		tools.Output(b, "as", "-o", object, object+".s")
		args = append(args, object)
	}
	tools.Output(b, "ld", args...)
	return args[2]
}

// BenchmarkTable makes the table of an image, and reports how many times as long
// nm takes to list its symbols.
func BenchmarkTable(b *testing.B) {
	image := manyImage(b)
	start := time.Now()
	expect.OK(b, exec.Command("nm", image).Run())
	nm := time.Since(start)
	for b.Loop() {
		f, err := os.Open(image)
		expect.OK(b, err)
		info, err := f.Stat()
		expect.OK(b, err)
		o, err := elfreloc.Open(f, info.Size(), image)
		expect.OK(b, err)
		expect.Value(resolve.New(o, nowhere))(b)
		f.Close()
	}
	b.ReportMetric(nm.Seconds()/(b.Elapsed().Seconds()/float64(b.N)), "nm/op")
}

// BenchmarkLookup looks up addresses all over the image: a million a second would
// be 1000 ns/op.
func BenchmarkLookup(b *testing.B) {
	data := disk.Read(b, manyImage(b))
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "image")
	expect.OK(b, err)
	table, err := resolve.New(o, nowhere)
	expect.OK(b, err)
	text := o.Sections[objects.Section(b, o, ".text")]
	found, i := 0, uint64(0)
	for b.Loop() {
		i += 0x9e3779b97f4a7c15
		if _, ok := table.Lookup(0, text.Addr+i%text.Size); ok {
			found++
		}
	}
	if found < b.N/2 {
		b.Errorf("%d of %d found", found, b.N)
	}
}

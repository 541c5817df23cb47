//go:build linux

package safety

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// callsOfLarge returns how many calls a section of code of a large object has. The
// relocations of the first one are divided, too.
func callsOfLarge(section int) int {
	if section == 0 {
		return 300_000
	}
	return 10_000
}

// writeLarge writes an object of sections of code between sections of random bytes, no two
// parts of which are the same, of so many bytes each.
func writeLarge(t *testing.T, path string, sizes ...int) {
	t.Helper()
	tools.Need(t, "as")
	random := rand.NewChaCha8([32]byte{1})
	var source strings.Builder
	for i, size := range sizes {
		data := make([]byte, size)
		random.Read(data)
		name := fmt.Sprintf("%s.%d", path, i)
		disk.Write(t, name, string(data))
		defer os.Remove(name)
		fmt.Fprintf(&source, ".section .rodata.%d, \"a\"\n.incbin %q\n", i, name)
		fmt.Fprintf(&source, ".section .text.%d, \"ax\"\n.rept %d\ncall __dtrace_probe_large___%[1]d\n.endr\n", i, callsOfLarge(i))
	}
	disk.Write(t, path+".s", source.String())
	defer os.Remove(path + ".s")
	tools.Must(t, "as", "-o", path, path+".s")
}

// checkLarge compares the sections of such an object with those of its conversion, as
// debug/elf reads both.
func checkLarge(t *testing.T, old, converted string) {
	t.Helper()
	a, b := disk.OpenELF(t, old), disk.OpenELF(t, converted)
	call, nop := []byte{0xe8, 0, 0, 0, 0}, []byte{0x0f, 0x1f, 0x44, 0, 0}
	text := 0
	for _, s := range a.Sections {
		want := expect.Value(s.Data())(t)
		switch {
		case s.Type != elf.SHT_PROGBITS:
			continue
		case strings.HasPrefix(s.Name, ".text."):
			expect.Equal(t, true, bytes.Equal(want, bytes.Repeat(call, callsOfLarge(text))), "calls of %s", s.Name)
			want = bytes.Repeat(nop, callsOfLarge(text))
			text++
		}
		now := b.Section(s.Name)
		if now == nil || !bytes.Equal(expect.Value(now.Data())(t), want) {
			t.Errorf("%s: %s is not what it was", converted, s.Name)
		}
	}
}

// Large files are written in blocks. A pipe gets the same bytes as a file.
func TestLargeRandomFile(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the assembler is that of another machine")
	}
	directory := t.TempDir()
	path := filepath.Join(directory, "large.o")
	// The short ones fit between others, the long ones are divided.
	writeLarge(t, path, 40<<20+12345, 1<<10, 9<<20, 300<<10, 17<<20+1, 5<<20)
	row := exec.Command(program, "--no-stapsdt", "-o", "/dev/stdout", path)
	want := expect.Value(row.Output())(t)
	var out string
	for _, threads := range []string{"-j1", "-j2", "-j8"} {
		out = filepath.Join(directory, "out"+threads+".o")
		run(t, threads, "--no-stapsdt", "-o", out, path).ok(t)
		wantBytes(t, out, want)
		if threads != "-j8" {
			expect.OK(t, os.Remove(out))
		}
	}
	checkLarge(t, path, out)
	archive, gone := filepath.Join(directory, "large.a"), filepath.Join(directory, "out-j8.o")
	expect.OK(t, os.Remove(gone))
	tools.Must(t, "ar", "rcsD", archive, path)
	run(t, "--no-stapsdt", archive).ok(t)
	if got := tools.Output(t, "ar", "p", archive, "large.o"); got != string(want) {
		t.Error("a member of an archive is not what it is by itself")
	}
}

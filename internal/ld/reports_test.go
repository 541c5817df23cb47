package ld

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/ld/rename"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/testkit/expect"
)

func TestDropPrerequisite(t *testing.T) {
	for in, want := range map[string]string{
		"out: a.o \\\n  /t/s.o \\\n  b.o\n\na.o:\n\n/t/s.o:\n\nb.o:\n": "out: a.o \\\n  b.o\n\na.o:\n\nb.o:\n", // GNU ld, gold, lld
		"out: a.o /t/s.o b.o\n\na.o:\n/t/s.o:\nb.o:\n":                 "out: a.o b.o\n\na.o:\nb.o:\n",         // mold
		"out: \\\n  a.o \\\n  /t/s.o\n\na.o:\n\n/t/s.o:\n":             "out: \\\n  a.o\n\na.o:\n\n",
		"out: a.o\n":          "out: a.o\n",
		"out: a/t/s.o":        "out: a/t/s.o", // the end of another name
		"out: /t/s.o":         "out:",
		"  \n ":               "  \n ",
		"out: /t/s.o /t/s":    "out: /t/s",
		"/t/s.o:\n\nb.o:\n":   "b.o:\n",
		"a: /t/s.ob /t/s.o\n": "a:b\n",
	} {
		for size := 1; size <= len(in); size++ {
			var out bytes.Buffer
			d := newPrerequisiteDropper(&out, "/t/s.o")
			for text := in; text != ""; {
				n := min(size, len(text))
				expect.Value(io.WriteString(d, text[:n]))(t)
				text = text[n:]
			}
			expect.OK(t, d.Close())
			expect.Equal(t, want, out.String(), "%q in pieces of %d", in, size)
		}
	}
}

// preparedFor returns a link in which two inputs and an added object have temporary names.
func preparedFor() *prepared {
	names := rename.New("/tmp/x1/")
	names.Add("/tmp/x1/w/a.o", "a.o")
	names.Add("/tmp/x1/w/b\\1.o", "b\\1.o")
	names.Add("/tmp/x1/stubs.o", addedName)
	return &prepared{Line: &line.Line{}, names: names, addition: &addition{file: "/tmp/x1/stubs.o"}}
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		makefile         bool
	}{
		{"map", "LOAD /tmp/x1/w/a.o\nLOAD /tmp/x1/stubs.o\n", "LOAD a.o\nLOAD sdtconvert-stubs.o\n", false},
		{"lld", "out: \\\n  /tmp/x1/w/b/1.o \\\n  /tmp/x1/stubs.o\n\n/tmp/x1/w/b/1.o:\n\n/tmp/x1/stubs.o:\n", "out: \\\n  b\\1.o\n\nb\\1.o:\n\n", true},
		{"without", "LOAD a.o\n", "LOAD a.o\n", false},
		{"empty", "", "", true},
		{"across", strings.Repeat("x", maxHeld-3) + "/tmp/x1/w/a.o", strings.Repeat("x", maxHeld-3) + "a.o", false},
		{"across rule", strings.Repeat("x", maxHeld-3) + " /tmp/x1/stubs.o y", strings.Repeat("x", maxHeld-3) + " y", true},
	} {
		file := filepath.Join(t.TempDir(), "report")
		expect.OK(t, os.WriteFile(file, []byte(c.text), 0o640))
		before, _ := os.Stat(file)
		expect.OK(t, preparedFor().rewrite(&replace.Writer{}, file, c.makefile))
		got, err := os.ReadFile(file)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %.300q, want %.300q, %v", c.name, got, c.want, err)
		}
		after, _ := os.Stat(file)
		expect.Equal(t, before.Mode(), after.Mode(), "%s: mode", c.name)
		expect.Equal(t, c.text == c.want, os.SameFile(before, after), "%s: is the same file", c.name)
	}
}

// A report of any size takes no more memory than a small one.
func TestMemoryOfRewrite(t *testing.T) {
	const size = 64 << 20
	file := filepath.Join(t.TempDir(), "out.map")
	f := expect.Value(os.Create(file))(t)
	w, lines := bufio.NewWriter(f), 0
	for n := 0; n < size; lines++ {
		was, _ := w.WriteString(" .text          0x0000000000401000       0x12 /tmp/x1/w/a.o\n")
		n += was
	}
	expect.OK(t, w.Flush())
	f.Close()
	for _, makefile := range []bool{false, true} {
		if peak := peakHeap(func() {
			expect.OK(t, preparedFor().rewrite(&replace.Writer{}, file, makefile))
		}); peak > 16<<20 {
			t.Errorf("%d MB of memory for a report of %d MB", peak>>20, size>>20)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || bytes.Count(text, []byte(" a.o\n")) != lines || bytes.Contains(text, []byte("/tmp")) {
		t.Errorf("names are not put back, %v", err)
	}
}

// peakHeap returns how much the heap grows while a function runs, in bytes.
func peakHeap(f func()) uint64 {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base, peak := m.HeapAlloc, m.HeapAlloc
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
			time.Sleep(time.Millisecond)
		}
	}()
	f()
	stop.Store(true)
	<-done
	return peak - base
}

package unwind_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/unwind"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

const source = `
int g(int, int, int);
int f(int n, int *p) { int s = 0; for (int i = 0; i < n; i++) { if (p[i] > 3) s += g(i, s, 3); s += g(s, p[i], n); } return s; }
int h(int n) { if (n) return g(n, n, n) + 1; char b[n + 9]; return g(n, b[1], (int)(long)b); }
void leaf(int *p) { *p = 3; }
__attribute__((section(".text.more"))) int more(int n) { return g(n, 1, g(2, n, 3)); }
`

var (
	frame = regexp.MustCompile(`^\S+ \S+ \S+ FDE .* pc=([0-9a-f]+)\.\.`)
	line  = regexp.MustCompile(`^([0-9a-f]{8,}) (\w+\+\d+|exp)`)
)

// TestRowsAreThoseOfReadelf compares the distances from the stack pointer, in sections where
// functions do not have the same addresses.
func TestRowsAreThoseOfReadelf(t *testing.T) {
	for _, m := range []*toolchains.Machine{toolchains.I386, toolchains.AMD64} {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
			for _, flags := range []string{"-O0", "-O2", "-Os -fomit-frame-pointer", "-O2 -fno-asynchronous-unwind-tables -fexceptions"} {
				t.Run(strings.Join([]string{m.Name, cc.Name, flags}, " "), func(t *testing.T) {
					t.Parallel()
					compiler := m.CC(cc)
					tools.Need(t, compiler[0], "readelf")
					directory := t.TempDir()
					object := filepath.Join(directory, "code.o")
					disk.Write(t, object+".c", source)
					tools.Must(t, compiler[0], append(compiler[1:], append(strings.Fields(flags), "-ffunction-sections", "-c", "-o", object, object+".c")...)...)
					checkRows(t, object)
				})
			}
		}
	}
}

func checkRows(t *testing.T, object string) {
	t.Helper()
	data := disk.Read(t, object)
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), object))(t)
	found := map[string]int{}
	for _, rows := range expect.Value(unwind.Rows(o))(t) {
		for _, r := range rows {
			if r.Known {
				found[fmt.Sprintf("%x %d", r.At, r.Distance)]++
			}
		}
	}
	want, inFrame := map[string]int{}, false
	for _, text := range strings.Split(tools.Must(t, "readelf", "--debug-dump=frames-interp", object), "\n") {
		if text == "" || frame.MatchString(text) {
			inFrame = text != ""
		}
		m := line.FindStringSubmatch(text)
		if m == nil || !inFrame || m[2] == "exp" {
			continue
		}
		_, distance, _ := strings.Cut(m[2], "+")
		at := expect.Value(strconv.ParseUint(m[1], 16, 64))(t)
		want[fmt.Sprintf("%x %s", at, distance)]++
	}
	for row := range want {
		if found[row] == 0 {
			t.Errorf("readelf has a row %s, of %v", row, found)
		}
	}
	for row := range found {
		if want[row] == 0 {
			t.Errorf("readelf has no row %s, but %v", row, want)
		}
	}
}

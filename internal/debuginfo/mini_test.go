package debuginfo

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// compressed returns what xz makes of data.
func compressed(t *testing.T, data []byte, flags ...string) []byte {
	t.Helper()
	tools.Need(t, "xz")
	path := filepath.Join(t.TempDir(), "data")
	disk.Write(t, path, string(data))
	tools.Output(t, "xz", append(flags, path)...)
	return disk.Read(t, path+".xz")
}

// TestDecompress reads what xz has written, whole and cut off anywhere.
func TestDecompress(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 4000 {
		fmt.Fprintf(&text, "function_%d\x00", r.IntN(2000))
	}
	random := make([]byte, 3000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for _, data := range []string{text.String(), string(random), "x"} {
		for _, flags := range [][]string{{"-0"}, {"-6"}, {"-9e"}, {"--check=none"}, {"-T2"}} {
			file := compressed(t, []byte(data), flags...)
			got, err := decompress(file)
			if err != nil || !bytes.Equal(got, []byte(data)) {
				t.Errorf("%v: %d bytes of %d, error %v", flags, len(got), len(data), err)
			}
			for cut := 0; cut < len(file)-64; cut += 1 + len(file)/9 {
				if _, err := decompress(file[:cut]); err == nil {
					t.Errorf("%v: no error for %d of %d bytes", flags, cut, len(file))
				}
			}
		}
	}
}

// TestDecompressRefuses reads files that would cost much, or that have other filters.
func TestDecompressRefuses(t *testing.T) {
	zeros := compressed(t, make([]byte, 1<<20))
	_, err := decompress(zeros)
	expect.Error(t, err, "holds more than 32 times its size")
	_, err = decompress(compressed(t, []byte("x"), "--x86", "--lzma2"))
	expect.Error(t, err, "filters that are not known")
	_, err = decompress([]byte("text"))
	expect.Error(t, err, "is no xz file")
}

func FuzzDecompress(f *testing.F) {
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x02\x00!\x01\x16\x00\x00\x00t/\xe5\xa3\x01\x00\x00x\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if out, err := decompress(data); err == nil && len(out) > miniRatio*len(data) {
			t.Errorf("%d bytes of %d", len(out), len(data))
		}
	})
}

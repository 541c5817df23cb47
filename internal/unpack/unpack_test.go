package unpack

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// text is what repeats, and does not fit into one block of the formats.
func text() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < 300_000 {
		b.WriteString(strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(40)))
	}
	return b.Bytes()
}

// compressors are the commands that compress standard input, with the names of their formats.
var compressors = map[string]string{
	"xz":                      "xz",
	"xz --check=crc32 -9":     "xz",
	"xz --check=sha256 -0":    "xz",
	"xz -T2 --block-size=9KB": "xz",
	"zstd":                    "zstd",
	"zstd -19 --no-check":     "zstd",
	"gzip -1":                 "gzip",
}

// compress returns what a command makes of data.
func compress(t testing.TB, command string, data []byte) []byte {
	t.Helper()
	words := strings.Fields(command)
	tools.Need(t, words[0])
	in := tools.Command{Stdin: string(data)}
	return []byte(in.Output(t, words[0], append(words[1:], "-c")...))
}

// TestFile decompresses what the programs of each format compress, and all beginnings of it.
func TestFile(t *testing.T) {
	want := text()
	for command, format := range compressors {
		packed := compress(t, command, want)
		expect.Equal(t, format, Format(packed), "%s", command)
		got := expect.Value(File(packed, int64(len(want))))(t)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes", command)
		}
		_, err := File(packed, int64(len(want)-1))
		expect.Error(t, err, fmt.Sprintf("holds more than %d bytes", len(want)-1))
		for _, cut := range []int{1, 8, len(packed) / 2, len(packed) - 20} {
			if file, err := File(packed[:len(packed)-cut], int64(len(want))); err == nil && !bytes.Equal(file, want) {
				t.Errorf("%s: the file without its last %d bytes holds %d bytes", command, cut, len(file))
			}
		}
	}
	expect.Equal(t, "", Format([]byte("\x7fELF")), "format")
	packed := compress(t, "xz", want)
	_, err := File(append(packed, packed...), 1<<20)
	expect.Error(t, err, "more than one stream")
	_, err = File(compress(t, "xz --x86 --lzma2", want), 1<<20)
	expect.Error(t, err, "want LZMA2")
}

// FuzzFile decompresses any bytes. No result is longer than its limit.
func FuzzFile(f *testing.F) {
	for command := range compressors {
		f.Add(compress(f, command, []byte(strings.Repeat("module ", 100))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 16
		if file, err := File(data, limit); err == nil && len(file) > limit {
			t.Fatalf("%d bytes", len(file))
		}
	})
}

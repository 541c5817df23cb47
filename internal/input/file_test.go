package input_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// sizes are around the bounds of what is read at once.
var sizes = []int{0, 1, 511, 512, 513, 16<<10 - 1, 16 << 10, 16<<10 + 1, 200 << 10, input.LoadMax, input.LoadMax + 1}

// numbered makes bytes that are not the same anywhere near each other.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	disk.Write(t, path, data)
	return path
}

func open(t testing.TB, path string) *input.File {
	t.Helper()
	f := expect.Value(input.Open(path))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// checkRead reads ranges of a file, by both ways.
func checkRead(t *testing.T, f *input.File, want []byte) {
	t.Helper()
	for _, off := range []int{0, 1, 100, 5000, len(want) / 2, len(want) - 6<<10, len(want) - 100, len(want) - 1} {
		for _, n := range []int{0, 1, 100, 20 << 10, len(want)} {
			if off < 0 || off+n > len(want) {
				continue
			}
			if b := f.Slice(int64(off), int64(n)); b != nil && !bytes.Equal(b, want[off:off+n]) {
				t.Fatalf("Slice of %d bytes at %d of %d has others", n, off, len(want))
			}
			b := make([]byte, n)
			if got, err := f.ReadAt(b, int64(off)); got != n || err != nil || !bytes.Equal(b, want[off:off+n]) {
				t.Fatalf("ReadAt of %d bytes at %d of %d: %d, %v", n, off, len(want), got, err)
			}
		}
	}
	b := make([]byte, 2)
	if n, err := f.ReadAt(b, int64(len(want))-1); len(want) > 0 && (n != 1 || err != io.EOF) {
		t.Fatalf("ReadAt over the end of %d bytes: %d, %v", len(want), n, err)
	}
}

func TestFileReadsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range sizes {
		data := numbered(size)
		f := open(t, write(t, path, data))
		expect.Equal(t, int64(size), f.Size(), "%d bytes", size)
		expect.Equal(t, size <= 16<<10, f.Loaded(), "%d bytes: loaded", size)
		checkRead(t, f, data)
		expect.OK(t, f.Load())
		expect.Equal(t, size <= input.LoadMax, f.Loaded(), "%d bytes: loaded after Load", size)
		checkRead(t, f, data)
		expect.OK(t, f.Unchanged())
	}
}

func TestFileServesSeveralGoroutines(t *testing.T) {
	data := numbered(200 << 10)
	f := open(t, write(t, filepath.Join(t.TempDir(), "file"), data))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for off := 0; off+100 <= len(data); off += 997 {
				b := make([]byte, 100)
				if _, err := f.ReadAt(b, int64(off)); err != nil || !bytes.Equal(b, data[off:off+100]) {
					t.Errorf("%d: %v", off, err)
				}
				if s := f.Slice(int64(off), 100); s != nil && !bytes.Equal(s, data[off:off+100]) {
					t.Errorf("%d: other bytes", off)
				}
			}
		})
	}
	expect.OK(t, f.Load())
	wg.Wait()
}

func TestClosedFile(t *testing.T) {
	data := numbered(200 << 10)
	f := open(t, write(t, filepath.Join(t.TempDir(), "file"), data))
	head := f.Slice(0, 100)
	for range 2 {
		expect.OK(t, f.CloseFile())
	}
	b := make([]byte, 100)
	if _, err := f.ReadAt(b, 0); err != nil || !bytes.Equal(b, data[:100]) || !bytes.Equal(head, data[:100]) {
		t.Errorf("what is in memory is gone with the file: %v", err)
	}
	// Another file has the descriptor by now.
	other := open(t, write(t, filepath.Join(t.TempDir(), "other"), make([]byte, 200<<10)))
	if _, err := f.ReadAt(b, 100<<10); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if s := f.Slice(100<<10, 100); s != nil {
		t.Error("a closed file is read")
	}
	if err := f.Load(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		expect.OK(t, f.Close())
	}
	if _, err := f.ReadAt(b, 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := other.ReadAt(b, 100<<10); err != nil {
		t.Errorf("the other file is closed too: %v", err)
	}
}

// changes are what may happen to a file that is open.
var changes = map[string]func(t *testing.T, path string){
	"shorter": func(t *testing.T, path string) {
		expect.OK(t, os.Truncate(path, 100<<10))
	},
	"longer": func(t *testing.T, path string) {
		expect.OK(t, os.Truncate(path, 300<<10))
	},
	"another": func(t *testing.T, path string) {
		write(t, path+".new", numbered(200<<10))
		expect.OK(t, os.Rename(path+".new", path))
	},
	"of another time": func(t *testing.T, path string) {
		expect.OK(t, os.Chtimes(path, time.Time{}, time.Unix(1_000_000_000, 1)))
	},
}

func TestChangedFile(t *testing.T) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "file"), numbered(200<<10))
			f := open(t, path)
			expect.OK(t, f.Unchanged())
			change(t, path)
			err := f.Unchanged()
			if want := "convert " + path + ": " + input.ErrChanged.Error(); !errors.Is(err, input.ErrChanged) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	path := write(t, filepath.Join(t.TempDir(), "file"), numbered(100))
	f := open(t, path)
	expect.OK(t, os.Remove(path))
	if err := f.Unchanged(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A file that is cut off while it is open gives no bytes that it does not have.
func TestCutOffFile(t *testing.T) {
	data := numbered(200 << 10)
	path := write(t, filepath.Join(t.TempDir(), "file"), data)
	f := open(t, path)
	changes["shorter"](t, path)
	if b := f.Slice(150<<10, 100); b != nil {
		t.Error("Slice returns bytes that are gone")
	}
	if n, err := f.ReadAt(make([]byte, 100), 100<<10-50); n != 50 || err != io.EOF {
		t.Errorf("ReadAt: %d, %v", n, err)
	}
	if err := f.Load(); !errors.Is(err, input.ErrChanged) || err.Error() != path+": "+input.ErrChanged.Error() {
		t.Errorf("Load: %v", err)
	}
	if f.Loaded() {
		t.Error("it is loaded")
	}
}

func wantNoFile(t *testing.T, path, why string) {
	t.Helper()
	f, err := input.Open(path)
	if err == nil {
		f.Close()
		t.Fatalf("%s is opened", path)
	}
	if want := "open " + path + ": " + why; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	wantNoFile(t, t.TempDir(), "is a directory")
	wantNoFile(t, os.DevNull, "is not a regular file")
	wantNoFile(t, filepath.Join(t.TempDir(), "none"), "no such file or directory")
}

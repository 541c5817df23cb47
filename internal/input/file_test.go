package input_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

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

func TestSourceReadsWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 200 << 10} {
		data := numbered(size)
		f := open(t, write(t, path, data))
		expect.Equal(t, int64(size), f.Size(), "%d bytes", size)
		src := f.Source()
		for _, off := range []int{0, 1, size / 2, size - 100, size - 1} {
			if off < 0 || off >= size {
				continue
			}
			b := make([]byte, 300)
			n, err := src.ReadAt(b, int64(off))
			if want := data[off:min(size, off+len(b))]; !bytes.Equal(b[:n], want) || (err == io.EOF) != (n < len(b)) {
				t.Fatalf("at %d of %d: %d bytes, %v", off, size, n, err)
			}
		}
		expect.OK(t, f.CheckUnchanged())
		expect.OK(t, f.Close())
		if _, err := src.ReadAt(make([]byte, 1), 0); size > 0 && !errors.Is(err, os.ErrClosed) {
			t.Errorf("%d bytes, closed: %v", size, err)
		}
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
			expect.OK(t, f.CheckUnchanged())
			change(t, path)
			err := f.CheckUnchanged()
			if want := "convert " + path + ": " + input.ErrChanged.Error(); !errors.Is(err, input.ErrChanged) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	path := write(t, filepath.Join(t.TempDir(), "file"), numbered(100))
	f := open(t, path)
	expect.OK(t, os.Remove(path))
	if err := f.CheckUnchanged(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A file that is cut off while it is open gives no bytes that it does not have.
func TestCutOffFile(t *testing.T) {
	data := numbered(200 << 10)
	path := write(t, filepath.Join(t.TempDir(), "file"), data)
	src := open(t, path).Source()
	changes["shorter"](t, path)
	if n, err := src.ReadAt(make([]byte, 100), 100<<10-50); n != 50 || err != io.EOF {
		t.Errorf("ReadAt: %d, %v", n, err)
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

// Package converted gives tests objects that were converted.
package converted

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/patch"
)

// Object converts the bytes of an object, with records and tables of functions. It reports whether there was
// something to convert, and nothing in the way.
func Object(t testing.TB, data []byte) ([]byte, bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.o")
	disk.Write(t, path, data)
	opts := patch.Options{FixedLayout: true, Functions: patch.WithFunctions}
	// Of what stays as it is, no fresh file is made.
	target := filepath.Join(t.TempDir(), "b.o")
	r := convert.New(convert.Options{Patch: opts, Jobs: 1, SkipUnchanged: true}, &replace.Writer{}).File(path, target)
	if r.Failed {
		return nil, false
	}
	out, err := os.ReadFile(target)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return out, err == nil
}

// Bytes converts an object in memory. It returns nil for one that stays as it is.
func Bytes(t testing.TB, data []byte, opts patch.Options) ([]byte, error) {
	t.Helper()
	out, err := patch.Convert(objects.Open(t, data), opts)
	if err != nil || out == nil {
		return nil, err
	}
	return expect.Value(objects.Assemble(out, data))(t), nil
}

// Assemble returns the object of an assembler's text for amd64.
func Assemble(t testing.TB, text string) []byte {
	t.Helper()
	tools.Need(t, "as")
	source := filepath.Join(t.TempDir(), "a.s")
	disk.Write(t, source, text)
	tools.Must(t, "as", "--64", "-o", source+".o", source)
	return disk.Read(t, source+".o")
}

package convert_test

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/patch"
)

// sharedSymbol matches the line of a symbol that links see, without its number.
var sharedSymbol = regexp.MustCompile(`(?m)^ *\d+: (.* (?:WEAK|GLOBAL) .*)$`)

// shared returns what readelf shows of the symbols of an object that links see, and of its groups.
func shared(t *testing.T, object []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.o")
	disk.Write(t, path, object)
	var lines []string
	for _, m := range sharedSymbol.FindAllStringSubmatch(tools.Output(t, "readelf", "-sW", path), -1) {
		lines = append(lines, m[1])
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + tools.Output(t, "readelf", "-gW", path)
}

// TestRestore takes back what objcopy does to the symbols of a converted object. The oracle is the object before. Of an object with
// random bytes in it, the result is an error or an object.
func TestRestore(t *testing.T) {
	tools.Need(t, "objcopy", "readelf", toolchains.LLVM("llvm-objcopy"))
	object := expect.Value(converted.Bytes(t, objects.Read(t, "small.amd64-clang19-O2.o"), patch.Options{Notes: patch.WithNotes}))(t)
	path := filepath.Join(t.TempDir(), "a.o")
	disk.Write(t, path, object)
	tools.Must(t, "objcopy", "--remove-section=.llvm_addrsig", path)
	object = bytes.Clone(disk.Read(t, path))
	want := shared(t, object)
	for _, tool := range []string{"objcopy", toolchains.LLVM("llvm-objcopy")} {
		for _, change := range []string{"--localize-hidden", "--prefix-symbols=their_"} {
			disk.Write(t, path, object)
			tools.Must(t, tool, change, path)
			changed := bytes.Clone(disk.Read(t, path))
			restored := restore(t, changed)
			// Functions, and the base of semaphores, which needs no name, keep the prefix.
			expect.Equal(t, want, strings.ReplaceAll(shared(t, restored), "their_", ""), "%s %s", tool, change)
			o := expect.Value(elfreloc.Open(bytes.NewReader(restored), int64(len(restored)), "a.o"))(t)
			localized, err := patch.IsLocalized(o, "")
			if localized || err != nil {
				t.Errorf("%s %s: %v, %v after it was restored", tool, change, localized, err)
			}
			random := rand.New(rand.NewPCG(53, uint64(len(changed))))
			for range tools.Cases(t, 2000) {
				broken := bytes.Clone(changed)
				for range 1 + random.IntN(3) {
					broken[64+random.IntN(len(broken)-64)] = byte(random.Uint32())
				}
				o, err := elfreloc.Open(bytes.NewReader(broken), int64(len(broken)), "broken.o")
				if err != nil {
					continue
				}
				out, err := patch.Restore(o, patch.Options{})
				if err == nil && out != nil {
					err = out.Write(&bytes.Buffer{}, bytes.NewReader(broken))
				}
				if err != nil && !strings.HasPrefix(err.Error(), "broken.o: ") {
					t.Fatal(err)
				}
			}
		}
	}
}

// restore restores an object.
func restore(t *testing.T, object []byte) []byte {
	t.Helper()
	o := expect.Value(elfreloc.Open(bytes.NewReader(object), int64(len(object)), "a.o"))(t)
	out := expect.Value(patch.Restore(o, patch.Options{}))(t)
	if out == nil {
		t.Fatal("nothing to restore")
	}
	var file bytes.Buffer
	expect.OK(t, out.Write(&file, bytes.NewReader(object)))
	return file.Bytes()
}

package shared

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func TestFilesAreMadeOnce(t *testing.T) {
	f := Files{Directory: t.TempDir()}
	made := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			path, err := f.Make("a", []string{"x", "y"}, func(out string) error {
				made++
				return os.WriteFile(out, []byte("text"), 0o666)
			})
			if text, readErr := os.ReadFile(path); err != nil || readErr != nil || string(text) != "text" || filepath.Base(path) != "a" {
				t.Errorf("%s: %q, %v, %v", path, text, err, readErr)
			}
		})
	}
	all.Wait()
	expect.Equal(t, 1, made, "times made")
	fault := errors.New("fault")
	for _, words := range [][]string{{"x"}, {"xy"}, {"x", "y", ""}} {
		if _, err := f.Make("a", words, func(string) error { return fault }); err != fault {
			t.Errorf("%q: %v", words, err)
		}
		if _, err := f.Make("a", words, func(string) error { return nil }); err != fault {
			t.Errorf("%q, again: %v", words, err)
		}
	}
}

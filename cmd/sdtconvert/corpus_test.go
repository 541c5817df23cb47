package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// conversion is what came of one committed object.
type conversion struct {
	before, after string // paths; after does not exist when the conversion failed
	status        int
	stderr        string
	object        manifestObject
}

// convertTo converts an object with a manifest, into a folder of the test.
func convertTo(t *testing.T, path string, flags ...string) conversion {
	t.Helper()
	c := conversion{before: path, after: filepath.Join(t.TempDir(), filepath.Base(path))}
	var stdout, stderr bytes.Buffer
	c.status = runWith(&stdout, &stderr, append(flags, "--json", "-o", c.after, path)...)
	c.stderr = strings.ReplaceAll(stderr.String(), filepath.Dir(path)+string(filepath.Separator), "")
	var manifest struct{ Objects []manifestObject }
	if err := json.Unmarshal(stdout.Bytes(), &manifest); err != nil || len(manifest.Objects) != 1 {
		t.Fatalf("%s: manifest of one object: %v\n%s", path, err, stdout.String())
	}
	c.object = manifest.Objects[0]
	return c
}

// outcome is the golden text of a conversion: sites by kind, or the messages.
func (c conversion) outcome() string {
	text := filepath.Base(c.before) + ": " + c.object.Status
	if c.status == exitOK {
		kinds := map[string]int{}
		for _, s := range c.object.Sites {
			kinds[s.Kind]++
		}
		names := make([]string, 0, len(kinds))
		for name, n := range kinds {
			names = append(names, fmt.Sprintf("%s %d", name, n))
		}
		slices.Sort(names)
		if len(names) > 0 {
			text += ": " + strings.Join(names, ", ")
		}
	}
	text += "\n"
	for line := range strings.Lines(c.stderr) {
		text += "\t" + line
	}
	return text
}

// Every committed object converts, or fails, exactly as corpus.golden says.
func TestCorpus(t *testing.T) {
	var got strings.Builder
	for _, path := range corpus(t) {
		c := convertTo(t, path)
		got.WriteString(c.outcome())
		if (c.status == exitOK) == (len(c.stderr) > 0) {
			t.Errorf("%s: exit status %d with messages %q", path, c.status, c.stderr)
		}
		if _, err := os.Stat(c.after); (err == nil) != (c.status == exitOK) {
			t.Errorf("%s: exit status %d, output: %v", path, c.status, err)
		}
	}
	const golden = "testdata/corpus.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Error(diff)
	}
}

// converted runs a check on each committed object that converts and has sites.
func converted(t *testing.T, check func(t *testing.T, c conversion), flags ...string) {
	n := 0
	for _, path := range corpus(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c := convertTo(t, path, flags...)
			if c.status == exitOK && len(c.object.Sites) > 0 {
				n++
				check(t, c)
			}
		})
	}
	if n == 0 {
		t.Error("no object was converted")
	}
}

func TestEveryCallOfAStubIsASite(t *testing.T) {
	converted(t, func(t *testing.T, c conversion) {
		if want := viewFile(t, c.before).stubCalls(); len(c.object.Sites) != want {
			t.Errorf("%d sites, and %d relocations of code against stubs", len(c.object.Sites), want)
		}
	})
}

func TestEveryCallOfAStubIsASiteByReadelf(t *testing.T) {
	readelf := needTool(t, "readelf")
	converted(t, func(t *testing.T, c conversion) {
		code := map[string]bool{}
		for i, s := range viewFile(t, c.before).Sections {
			if s.Flags&0x4 != 0 && i > 0 { // SHF_EXECINSTR
				code[s.Name] = true
			}
		}
		out, err := exec.Command(readelf, "-rW", c.before).Output()
		if err != nil {
			t.Fatal(err)
		}
		n, counts := 0, false
		for line := range strings.Lines(string(out)) {
			if rest, ok := strings.CutPrefix(line, "Relocation section '"); ok {
				name, _, _ := strings.Cut(rest, "'")
				counts = code[strings.TrimPrefix(strings.TrimPrefix(name, ".rela"), ".rel")]
			} else if counts && strings.Contains(line, " __dtrace_") {
				n++
			}
		}
		if len(c.object.Sites) != n {
			t.Errorf("%d sites, and readelf shows %d relocations of code against stubs", len(c.object.Sites), n)
		}
	})
}

func sameContents(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}

func TestSameInputGivesSameBytes(t *testing.T) {
	converted(t, func(t *testing.T, c conversion) {
		if again := convertTo(t, c.before); !sameContents(t, c.after, again.after) {
			t.Error("two conversions of one object differ")
		}
	})
}

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// The zero options of package patch do what the command does without flags: for each committed object the same
// bytes, or the same errors, and the same warnings.
func TestLibraryIsTheCommand(t *testing.T) {
	converted, refused := 0, 0
	for _, path := range objects.Paths(t) {
		data := disk.Read(t, path)
		if !bytes.HasPrefix(data, []byte("\x7fELF")) {
			continue
		}
		want := convertByCommand(t, path)
		got := convertByLibrary(t, path, data)
		if !bytes.Equal(want.output, got.output) {
			t.Errorf("%s: the library's object differs from the command's", path)
		}
		expect.Equal(t, want.messages, got.messages, "%s", path)
		switch {
		case len(got.output) > 0:
			converted++
		case len(got.messages) > 0:
			refused++
		}
	}
	if converted < 100 || refused < 20 {
		t.Errorf("%d objects were converted, and %d refused", converted, refused)
	}
}

// conversion is what comes of an object.
type conversion struct {
	output   []byte // nil where nothing changes
	messages []string
}

// convertByCommand converts in place a copy of an object.
func convertByCommand(t *testing.T, path string) (c conversion) {
	t.Helper()
	before := disk.Read(t, path)
	file := filepath.Join(t.TempDir(), filepath.Base(path))
	disk.Write(t, file, before)
	var stdout, stderr bytes.Buffer
	status := runWith(&stdout, &stderr, "convert", file)
	for line := range strings.Lines(stderr.String()) {
		message := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(line, "sdtconvert: "), "warning: "), "\n")
		c.messages = append(c.messages, strings.ReplaceAll(message, file, path))
	}
	if after := disk.Read(t, file); !bytes.Equal(before, after) {
		c.output = after
	}
	if (status != 0) != (c.output == nil && len(c.messages) > 0) {
		t.Errorf("%s: status %d, changed is %v: %s", path, status, c.output != nil, stderr.String())
	}
	return c
}

// convertByLibrary converts the bytes of an object.
func convertByLibrary(t *testing.T, path string, data []byte) (c conversion) {
	t.Helper()
	in := bytes.NewReader(data)
	o, err := elfreloc.Open(in, in.Size(), path)
	if err == nil {
		var plan *patch.Plan
		if plan, err = patch.Examine(o, patch.Options{}); err == nil {
			var out *elfreloc.Output
			if out, err = plan.Output(); err == nil && out != nil {
				var b bytes.Buffer
				expect.OK(t, out.Write(&b, in))
				c.output = b.Bytes()
			}
			for _, w := range plan.Warnings {
				c.messages = append(c.messages, w.Error())
			}
		}
	}
	if err != nil {
		c.messages = append(c.messages, strings.Split(err.Error(), "\n")...)
	}
	return c
}

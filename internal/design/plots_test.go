package design_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/disk"
)

// Pictures are of the tables that are there: scripts/plot puts the digest of what a page's scripts have measured into each. A page shows them.
func TestPlotsAreCurrent(t *testing.T) {
	for _, c := range []struct{ pictures, page string }{
		{"cost-*.svg", "cost.md"}, {"tracing-*.svg", "results.md"},
	} {
		page := disk.Read(t, "../../docs/"+c.page)
		var tables []byte
		measured := false
		for line := range bytes.Lines(page) {
			switch {
			case bytes.HasPrefix(line, []byte("<!-- made by scripts/bench-")):
				measured = true
			case bytes.HasPrefix(line, []byte("<!-- end")):
				measured = false
			case measured && line[0] == '|':
				tables = append(tables, line...)
			}
		}
		files, err := filepath.Glob("../../docs/" + c.pictures)
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, file := range files {
			plot := disk.Read(t, file)
			if !bytes.Contains(plot, fmt.Appendf(nil, "sha256 %x ", sha256.Sum256(tables))) {
				t.Errorf("%s is of other tables; run scripts/plot", file)
			}
			if name := filepath.Base(file); !bytes.Contains(page, []byte("]("+name+")")) {
				t.Errorf("docs/%s does not show %s", c.page, name)
			}
		}
	}
}

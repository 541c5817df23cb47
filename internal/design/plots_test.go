package design_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/disk"
)

// The pictures of docs/cost.md are of the tables that are there: scripts/plot puts their digest
// into each.
func TestPlotsAreCurrent(t *testing.T) {
	page := disk.Read(t, "../../docs/results/cost.md")
	var tables []byte
	for line := range bytes.Lines(page) {
		if line[0] == '|' {
			tables = append(tables, line...)
		}
	}
	files, err := filepath.Glob("../../docs/results/cost-*.svg")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	shown := disk.Read(t, "../../docs/cost.md")
	for _, file := range files {
		plot := disk.Read(t, file)
		if !bytes.Contains(plot, fmt.Appendf(nil, "sha256 %x ", sha256.Sum256(tables))) {
			t.Errorf("%s is of other tables; run scripts/plot", file)
		}
		if !bytes.Contains(shown, []byte("](results/"+filepath.Base(file)+")")) {
			t.Errorf("docs/cost.md does not show %s", filepath.Base(file))
		}
	}
}

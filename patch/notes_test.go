package patch_test

import (
	"strings"
	"testing"
)

// What no tracer was tried with is not written.
func TestNamesTooLongForNotes(t *testing.T) {
	object := func(size int) []byte {
		return assemble(t, "\t.text\nf:\tnop\n\tcall __dtrace_probe_shop___"+strings.Repeat("n", size)+"\n\tret\n")
	}
	if _, err := convertBytes(t, object(8188), withNotes()); err != nil {
		t.Error(err)
	}
	data := object(8189)
	_, err := convertBytes(t, data, withNotes())
	if want := ".text+0x1: provider and name of the probe have 8193 bytes, and a note has at most 8192; choose shorter ones"; err == nil ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := convertBytes(t, data, defaults()); err != nil {
		t.Errorf("without notes: %v", err)
	}
}

package patch_test

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
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

// OmittedArgs reads what Apply reads, and only Apply tells what is wrong with it.
func TestBrokenDebugInformationIsAWarningOfApply(t *testing.T) {
	data := assemble(t, "\t.text\nf:\tnop\n\tcall __dtrace_probe_shop___sale\n\tcall __dtrace_probe_shop___refund\n\tret\n"+
		"\t.section .debug_info,\"\",@progbits\n\t.long 0x100\n\t.section .debug_abbrev,\"\",@progbits\n\t.byte 0\n")
	o := objects.Open(t, data)
	plan := expect.Value(patch.Examine(o, withNotes()))(t)
	leaveOut := func() {
		if out, err := plan.OmittedArgs(); err != nil || len(out) > 0 {
			t.Errorf("left out: %v, %v", out, err)
		}
	}
	leaveOut()
	if len(plan.Warnings) > 0 {
		t.Errorf("before Apply: %v", plan.Warnings)
	}
	expect.OK(t, plan.Apply(expect.Value(o.Edit())(t)))
	leaveOut()
	if len(plan.Warnings) != 1 || !strings.HasPrefix(plan.Warnings[0].Error(), "a.o: debug information: .debug_info+0x0: ") {
		t.Errorf("after Apply: %v", plan.Warnings)
	}
}

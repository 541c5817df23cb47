package arch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
)

func TestDescribeNamesKindAndForm(t *testing.T) {
	got := map[string]string{}
	for _, k := range []arch.Kind{arch.Probe, arch.Enabled} {
		for name, f := range map[string]arch.Form{"call": arch.Call, "tail": arch.Tail, "cond": arch.CondTail} {
			got[map[arch.Kind]string{arch.Probe: "probe ", arch.Enabled: "enabled "}[k]+name] = arch.Describe(k, f)
		}
	}
	want := map[string]string{
		"probe call": "call", "probe tail": "tail", "probe cond": "cond-tail",
		"enabled call": "isenabled", "enabled tail": "isenabled-tail", "enabled cond": "isenabled-cond-tail",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalSaysWhatWasMetAndWhatToDo(t *testing.T) {
	for _, c := range []struct {
		refusal *arch.Refusal
		want    string
	}{
		{arch.Refuse("", "a jump of %d bytes", 3), "got a jump of 3 bytes"},
		{arch.Refuse("compile it again", "nothing"), "got nothing; compile it again"},
	} {
		if got := c.refusal.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestTextHoldsOnlyItsWindow(t *testing.T) {
	text := arch.Text{Code: []byte{1, 2, 3, 4}, Start: 100}
	for _, c := range []struct {
		off  uint64
		n    int
		want []byte
	}{
		{100, 4, []byte{1, 2, 3, 4}},
		{102, 1, []byte{3}},
		{103, 1, []byte{4}},
		{104, 0, []byte{}},
		{103, 2, nil},
		{99, 1, nil},
		{105, 0, nil},
		{^uint64(0), 1, nil},
	} {
		if got := text.At(c.off, c.n); !cmp.Equal(got, c.want) {
			t.Errorf("At(%d, %d) = %v, want %v", c.off, c.n, got, c.want)
		}
	}
}

func TestTextGivesNoRoomToAppendInto(t *testing.T) {
	code := []byte{1, 2, 3}
	b := arch.Text{Code: code}.At(0, 1)
	_ = append(b, 9)
	if code[1] != 2 {
		t.Errorf("appending to what At returned changed the text to %v", code)
	}
}

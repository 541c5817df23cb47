package amd64

import (
	"errors"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/expect"
)

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.As(err, new(*arch.Refusal)) {
		t.Fatalf("got %v, want a refusal", err)
	}
	expect.Equal(t, want, err.Error())
}

func TestDisableRefusesShortTailsThatHaveToReturnOtherwise(t *testing.T) {
	site := arch.Site{Form: arch.Tail, Register: true, Code: []byte{0xff, 0xe0}}
	_, err := Machine.Disable(site, arch.Enabled, arch.Context{})
	wantRefusal(t, err, "got an isenabled-tail through a register, of 2 bytes, which are too few; compile with -fno-optimize-sibling-calls")
	_, err = Machine.Disable(site, arch.Probe, arch.Context{ReturnThunk: true})
	wantRefusal(t, err, "got a tail through a register, of 2 bytes, which are too few; compile with -fno-optimize-sibling-calls")
	site = arch.Site{Form: arch.Call, Register: true, Code: []byte{0x42, 0xff, 0x54, 0x25, 0}}
	_, err = Machine.Disable(site, arch.Enabled, arch.Context{SemaphoreBytes: 4})
	wantRefusal(t, err, "got an isenabled through a register, which has no room to load a semaphore; compile without -mcmodel=large, or convert without notes (--no-stapsdt)")
}

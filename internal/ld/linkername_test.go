package ld

import (
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func TestLinkerNames(t *testing.T) {
	for name, want := range map[string]bool{
		"ld": true, "ld.bfd": true, "ld.gold": true, "ld.lld": true, "ld.lld-19": true, "lld": true, "lld-19": true, "ld64.lld": true, "mold": true, "ld.mold": true,
		"x86_64-linux-gnu-ld.bfd": true, "aarch64-linux-gnu-ld": true, "x86_64-linux-gnu-gold": true, "real-ld": true, "ld-new": true, "collect2": true, "lto1": true,
		"lto-wrapper": true, "rebuild": false, "fold": false, "objcopy": false, "as": false, "ldd": false, "build.sh": false, "world": false, "old": false,
	} {
		expect.Equal(t, want, linkerName().MatchString(name), "%s", name)
	}
}

package links

import (
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestReturnThunk links code that returns through a thunk, and runs it: no tail
// site may return by itself.
func TestReturnThunk(t *testing.T) {
	cases := []struct {
		compiler toolchains.Compiler
		define   string
		flags    []string
	}{
		{toolchains.GCC, "-DALL", nil},
		{toolchains.Clang, "-DALL", nil},
		{toolchains.GCC, "-DTAILS_ONLY", []string{"--return-thunk"}},
		{toolchains.Clang, "-DTAILS_ONLY", []string{"--return-thunk"}},
	}
	for _, tc := range cases {
		for _, ld := range amd64.linkers {
			t.Run(tc.compiler.Name+tc.define+"/"+ld.Name, func(t *testing.T) {
				t.Parallel()
				c := amd64Compiler(tc.compiler, "-Os", "-mfunction-return=thunk-extern")
				c.need(t)
				tools.Need(t, ld.Path)
				plain := compiler{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
				o := c.object(t, "thunk.c", tc.define)
				main := plain.object(t, "thunkmain.c", tc.define)
				twin, err := link(amd64, ld, "thunk", []string{"-pie"}, o, main, plain.object(t, "thunkmain.c", "-DSTUBS"))
				if err != nil {
					t.Skipf("unconverted: %v", err)
				}
				got, err := link(amd64, ld, "thunk", []string{"-pie"}, convert(t, o, tc.flags...), main)
				if err != nil {
					t.Fatal(err)
				}
				tools.Must(t, twin)
				tools.Must(t, got)
				checkThunk(t, openImage(t, got), twinSites(t, amd64, openImage(t, twin)))
			})
		}
	}
}

func checkThunk(t *testing.T, im *image, want []site) {
	t.Helper()
	got := im.records(t, pairs)
	// A conditional tail call is another instruction here, so places differ.
	inexact := *amd64
	inexact.exact = false
	compareSites(t, &inexact, got, want)
	for _, s := range got {
		code := im.bytes(t, s.addr, 8)
		if code[0] == 0xc3 || code[2] == 0xc3 && code[0] == 0x31 {
			t.Errorf("%s: %s returns by itself: % x", filepath.Base(im.path), s, code)
		}
	}
	checkNames(t, im)
}

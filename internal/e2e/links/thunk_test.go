package links

import (
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestReturnThunk links code that returns through a thunk, and runs it: no tail
// site may return by itself.
func TestReturnThunk(t *testing.T) {
	tails := []string{"--return-thunk"}
	cases := []struct {
		machine  *machine
		compiler toolchains.Compiler
		define   string
		flags    []string
	}{
		{amd64, toolchains.GCC, "-DALL", nil},
		{amd64, toolchains.Clang, "-DALL", nil},
		{amd64, toolchains.GCC, "-DTAILS_ONLY", tails},
		{amd64, toolchains.Clang, "-DTAILS_ONLY", tails},
		{s390x, toolchains.GCC, "-DALL", nil},
		{s390x, toolchains.GCC, "-DTAILS_ONLY", tails},
	}
	all := product.New("machine", "compiler", "define", "linker")
	for _, tc := range cases {
		for _, ld := range tc.machine.linkers {
			name := strings.TrimPrefix(tc.machine.Triplet+" ", " ") + tc.compiler.Name + tc.define + "/" + ld.Name
			all.Add(name, []string{tc.machine.Name, tc.compiler.Name, tc.define, ld.Name}, func(t *testing.T) {
				t.Parallel()
				m := tc.machine
				c := compiler{machine: m, cc: tc.compiler, flags: []string{"-Os", "-mfunction-return=thunk-extern", "-fPIC"}}
				c.need(t)
				tools.Need(t, ld.Path)
				plain := compiler{machine: m, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}}
				o := c.object(t, "thunk.c", tc.define)
				main := plain.object(t, "thunkmain.c", tc.define)
				twin, err := link(m, ld, "thunk", []string{"-pie"}, o, main, plain.object(t, "thunkmain.c", "-DSTUBS"))
				unconverted(t, err)
				got := expect.Value(link(m, ld, "thunk", []string{"-pie"}, convert(t, o, tc.flags...), main))(t)
				for _, exe := range []string{twin, got} {
					command := m.Command(exe)
					tools.Must(t, command[0], command[1:]...)
				}
				checkThunk(t, m, openImage(t, got), twinSites(t, m, openImage(t, twin)))
			})
		}
	}
	all.Run(t)
}

func checkThunk(t *testing.T, m *machine, im *image, want []site) {
	t.Helper()
	got := im.records(t, pairs)
	// A conditional tail call is another instruction here, so places differ.
	inexact := *m
	inexact.exact = false
	compareSites(t, &inexact, got, want)
	for _, s := range got {
		code := im.bytes(t, s.addr, 8)
		if code[0] == 0xc3 || code[2] == 0xc3 && code[0] == 0x31 || code[0] == 0x07 || m == s390x && code[4] == 0x07 && code[5] == 0xfe {
			t.Errorf("%s: %s returns by itself: % x", filepath.Base(im.path), s, code)
		}
	}
	checkNames(t, im)
}

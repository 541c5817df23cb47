package sites_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

var options = sites.Conventions{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}

// A breakpoint over the first bytes of a site arms it, whatever its form and length, and the kind of
// the site is that of the file.
func TestBreakpointsOverForms(t *testing.T) {
	kinds := map[string]int{}
	for _, f := range objects.Committed(t, 1<<20) {
		data, ok := converted.Object(t, f.Data)
		if !ok {
			continue
		}
		path := filepath.Join(t.TempDir(), "file.o")
		disk.Write(t, path, string(data))
		object, file := openFile(t, path)
		entries, _, err := linkerset.Layout{}.Read(file)
		expect.OK(t, err, "%s", f.Name)
		for _, bytes := range file.Machine().Traits().Breakpoints {
			copied := append([]byte{}, data...)
			for i := range entries {
				site := entries[i].Address
				copy(copied[object.Sections[site.Section].Offset+site.Offset:], bytes)
			}
			o := objects.Open(t, copied)
			memory := expect.Value(image.Open(o, machines.Lookup(o.ABI())))(t)
			before := sites.New(object, file, file, 0, options)
			armed := sites.New(object, file, memory, 0, options)
			for i := range entries {
				site := &sites.Site{Entry: entries[i]}
				want, got := expect.Value(before.Content(site))(t), expect.Value(armed.Content(site))(t)
				if want.State == sites.Disabled && (got.State != sites.Armed || got.Kind != want.Kind) {
					t.Errorf("%s: %s: got %+v, before the breakpoint %+v", f.Name, file.Place(entries[i].Address), got, want)
				}
				if want.State == sites.Disabled {
					kinds[file.Machine().Traits().Name+" "+want.Kind]++
				}
			}
		}
	}
	if len(kinds) < 30 || kinds["amd64 "+arch.ListedKind(arch.Probe, arch.Call)] == 0 {
		t.Errorf("got only %v", kinds)
	}
}

// What Linux 7.3 puts over the NOP of headers: a breakpoint, a call, and what is left of that.
func TestSitesOfHeaders(t *testing.T) {
	open := func(code string) (*elfreloc.Object, image.Image) {
		sites := ".macro site bytes:vararg\n9: .byte \\bytes\nrecord hit\n.endm\nsite " + code
		return openFile(t, assemble(t, toolchains.AMD64, fmt.Sprintf(thunked, sites, "__x86_return_thunk", "ret")))
	}
	object, file := open("0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0")
	entries, _, err := linkerset.Layout{}.Read(file)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	for _, c := range []struct{ code, want string }{
		{"0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", sites.Disabled},
		{"0xcc, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", sites.Armed},
		{"0x90, 0xcc, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", sites.Armed},
		{"0x90, 0x48, 0x8d, 0x64, 0x24, 0x80, 0xe8, 5, 0xcf, 0xff, 0xff", sites.Armed},
		{"0x90, 0xe9, 5, 0xcf, 0xff, 0xff, 0, 0, 0, 0, 0", sites.Armed}, // sdtconvert trace
		{"0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0xe8, 5, 0xcf, 0xff, 0xff", sites.Disabled},
		{"0x90, 0x48, 0x8d, 0x64, 0x24, 0x88, 0xe8, 5, 0xcf, 0xff, 0xff", sites.Unknown},
	} {
		_, memory := open(c.code)
		got := expect.Value(sites.New(object, file, memory, 0, options).Content(&sites.Site{Entry: entries[0]}))(t)
		expect.Equal(t, [2]string{arch.ListedKind(arch.Probe, arch.Call), c.want}, [2]string{got.Kind, got.State}, "%s", c.code)
	}
}

package image

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMaps(t *testing.T) {
	lib := fileID{0xfe, 1, 77}
	got, err := parseMaps(strings.NewReader(`400000-401000 r--p 00000000 fe:01 77                         /a b/lib\012x.so
401000-402000 r-xp 00001000 fe:01 77                         /lib.so (deleted)
402000-403000 rw-p 00000000 00:00 0
7fff0000-7fff1000 r-xp 00000000 00:00 0                      [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0      [vsyscall]
`))
	want := []Mapping{
		{Start: 0x400000, End: 0x401000, Path: "/a b/lib\nx.so", file: lib, text: `/a b/lib\012x.so`},
		{Start: 0x401000, End: 0x402000, Offset: 0x1000, Executable: true, Path: "/lib.so", Deleted: true, file: lib, text: "/lib.so (deleted)"},
		{Start: 0x402000, End: 0x403000},
		{Start: 0x7fff0000, End: 0x7fff1000, Executable: true, Path: "[vdso]", text: "[vdso]"},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Executable: true, Path: "[vsyscall]", text: "[vsyscall]"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, want)
	}
	for _, line := range []string{
		"x", "1-2", "1-2 r--p", "1-2 r--p 0 1:2", "1-2 r--p 0 12 7", "2-1 r--p 0 1:2 7 x", "1-2 r- 0 1:2 7 x",
		"1-2 r--p 0 1:2 7 x\n1-2 r--p 0 1:2 7 x", "1-20000000000000000 r--p 0 1:2 7 x", "\n",
	} {
		if all, err := parseMaps(strings.NewReader(line)); err == nil {
			t.Errorf("%q: %+v", line, all)
		}
	}
}

// ReopenByPath reads all modules again, as if /proc held no links to files.
func (p *Process) ReopenByPath() {
	p.Modules, p.dir = nil, "/nonexistent"
	p.openModules()
}

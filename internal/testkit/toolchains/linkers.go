package toolchains

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// Feature is what not every linker can do.
type Feature int

const (
	StaticPIE       Feature = iota // -static-pie
	Static                         // -static, with a C library
	RELR                           // -z pack-relative-relocs
	DynamicRELR                    // the same, with a dynamic loader
	Scripts                        // SECTIONS in linker scripts
	CrossReferences                // --cref
	GCCPlugin                      // GCC's plugin for link-time optimisation
	GroupsWithR                    // what -r makes of COMDAT groups can be linked
	RetainWithR                    // what -r makes of SHF_GNU_RETAIN is retained
	Distances                      // distances of 4 bytes in data
)

// Linker is a linker of others.
type Linker struct {
	Name    string
	Path    string // its program
	Family  string // by which a compiler's -fuse-ld calls it
	Package string // Debian's
	// Cannot says of features that the linker has not why a test passes them over.
	Cannot map[Feature]string
	old    bool // there is a newer one of its family
}

const binutils = "binutils"

// linkers are all of them, with the native names.
var linkers = []Linker{
	{Name: "bfd", Path: "ld.bfd", Family: "bfd", Package: binutils},
	{Name: "gold", Path: "ld.gold", Family: "gold", Package: Debian.gold, Cannot: map[Feature]string{
		StaticPIE:   "gold makes no static PIE",
		RELR:        "gold makes no SHT_RELR",
		RetainWithR: "gold forgets what is to be retained",
	}},
	{Name: "old-lld", Path: OldLLVM("ld.lld"), Family: "lld", Package: OldLLVM("lld"), old: true, Cannot: lldCannot},
	{Name: "lld", Path: LLVM("ld.lld"), Family: "lld", Package: LLVM("lld"), Cannot: lldCannot},
	{Name: "mold", Path: "mold", Family: "mold", Package: "mold", Cannot: moldCannot()},
}

var lldCannot = map[Feature]string{
	GCCPlugin: "lld takes no plugin of GCC",
}

// moldCannot returns what mold cannot do: 1.10 in the first suite, 2.37 in trixie.
func moldCannot() map[Feature]string {
	cannot := map[Feature]string{
		DynamicRELR:     "glibc loads no SHT_RELR of mold",
		Scripts:         "mold takes no SECTIONS",
		CrossReferences: "mold has no --cref",
	}
	if since("trixie") {
		cannot[GroupsWithR] = "gold refuses mold's groups, which follow their members"
		cannot[RetainWithR] = "mold forgets what is to be retained"
	} else {
		cannot[GroupsWithR] = "mold 1.10 merges sections of different groups"
	}
	return cannot
}

// Can reports whether a linker has a feature.
func (l Linker) Can(f Feature) bool { return l.Cannot[f] == "" }

// Use returns the option that has a compiler's driver take a linker of this family.
func (l Linker) Use() string { return "-fuse-ld=" + l.Family }

// LTO is a compiler and a native linker that do link-time optimisation together.
type LTO struct {
	Compiler Compiler
	Linker   Linker
	Flag     string // of the compiler, which asks for it
}

// LTOs returns the usual ways of link-time optimisation: GCC's plugin in GNU's linkers,
// and lld, which generates thin code of each file apart.
func LTOs() []LTO {
	return []LTO{
		{GCC, AMD64.Linker("bfd"), "-flto"},
		{GCC, AMD64.Linker("gold"), "-flto"},
		{OldClang, AMD64.Linker("old-lld"), "-flto=thin"},
		{Clang, AMD64.Linker("lld"), "-flto=thin"},
		{Clang, AMD64.Linker("lld"), "-flto"},
	}
}

// WaitForGDB starts a program under the emulator, which waits for gdb at a socket. The
// program reads the input.
func (m *Machine) WaitForGDB(t testing.TB, program, input string) (socket string) {
	t.Helper()
	// A socket's path has 107 bytes at most, and the name of a test may be long.
	directory := expect.Value(os.MkdirTemp("", "gdb"))(t)
	t.Cleanup(func() { os.RemoveAll(directory) })
	socket = filepath.Join(directory, "gdb")
	cmd := exec.Command(m.QEMU, "-g", socket, program)
	cmd.Stdin = strings.NewReader(input)
	expect.OK(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	expect.Soon(t, func() bool { _, err := os.Stat(socket); return err == nil }, "%s makes a socket", m.QEMU)
	return socket
}

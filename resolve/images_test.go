package resolve_test

import (
	"debug/elf"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/resolve"
)

// kinds are the images that programs are linked to.
var kinds = map[string][]string{
	"exe":    {"-no-pie"},
	"pie":    {"-pie"},
	"static": {"-static"},
	"shared": {"-shared", "-DLIBRARY"},
}

// Every function that nm lists holds its first byte, the one in its middle and
// its last, whatever links the image; and addr2line and eu-addr2line agree.
func TestImages(t *testing.T) {
	all := product.New("machine", "linker", "image")
	for _, m := range toolchains.Machines {
		for _, l := range m.Newest() {
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				all.Add(m.Name+"/"+l.Name+"/"+kind, []string{m.Name, l.Name, kind}, func(t *testing.T) {
					t.Parallel()
					tools.Need(t, append(m.Tools("gcc", "nm", "addr2line", "strip", "objcopy"), "eu-addr2line", l.Path)...)
					objects := compile(t, m.Tool("gcc"), []string{"-O2", "-fPIC", "-fasynchronous-unwind-tables"}, "program.c", "other.c")
					image := filepath.Join(t.TempDir(), "image")
					args := append([]string{"-B" + tools.Driver(t, l.Path), "-Wl,--build-id", "-o", image}, kinds[kind]...)
					tools.Output(t, m.Tool("gcc"), append(args, objects...)...)
					checkImage(t, m, image)
					checkStripped(t, m, image)
				})
			}
		}
	}
	all.Run(t)
}

// function is what nm prints of one.
type function struct {
	name        string
	start, size uint64
}

// listFunctions returns the functions of an image as nm lists them.
func listFunctions(t *testing.T, m *toolchains.Machine, image string, flags ...string) (functions []function) {
	t.Helper()
	var described []int // those whose symbols stand for descriptors
	// The columns of --format=sysv: name, value, class, type, size, line, section.
	for _, line := range strings.Split(tools.Output(t, m.Tool("nm"), append(flags, "--format=sysv", "--defined-only", image)...), "\n") {
		columns := strings.Split(line, "|")
		if len(columns) < 7 || strings.TrimSpace(columns[3]) != "FUNC" && strings.TrimSpace(columns[2]) != "i" {
			continue // class i is that of STT_GNU_IFUNC
		}
		f := function{name: strings.TrimSpace(columns[0])}
		f.start = parseHex(t, columns[1])
		if size := strings.TrimSpace(columns[4]); size != "" {
			f.size = parseHex(t, size)
		}
		if strings.TrimSpace(columns[6]) == ".opd" {
			described = append(described, len(functions))
		}
		functions = append(functions, f)
	}
	followDescriptors(t, image, functions, described)
	if len(functions) < 5 {
		t.Fatalf("nm lists %d functions", len(functions))
	}
	return functions
}

// followDescriptors gives functions the addresses of their code, which are in the section
// of descriptors, or which the loader puts there.
func followDescriptors(t *testing.T, image string, functions []function, described []int) {
	t.Helper()
	if described == nil {
		return
	}
	f := disk.OpenELF(t, image)
	code := map[uint64]uint64{}
	opd := f.Section(".opd")
	data, err := opd.Data()
	for off := 0; err == nil && off+8 <= len(data); off += 8 {
		code[opd.Addr+uint64(off)] = f.ByteOrder.Uint64(data[off:])
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 || err != nil {
			continue
		}
		for data, err = s.Data(); len(data) >= 24; data = data[24:] {
			if elf.R_PPC64(f.ByteOrder.Uint64(data[8:])) == elf.R_PPC64_RELATIVE {
				code[f.ByteOrder.Uint64(data)] = f.ByteOrder.Uint64(data[16:])
			}
		}
	}
	expect.OK(t, err)
	for _, i := range described {
		functions[i].start = code[functions[i].start]
	}
}

func parseHex(t *testing.T, s string) uint64 {
	t.Helper()
	return expect.Value(strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(s), "0x"), 16, 64))(t)
}

// places returns the addresses to ask about.
func places(functions []function) (addresses []uint64) {
	for _, f := range functions {
		if f.size > 0 {
			addresses = append(addresses, f.start, f.start+f.size/2, f.start+f.size-1)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// holders returns the names of the sized functions that hold an address and start
// last, and where that is.
func holders(functions []function, address uint64) (names []string, start uint64) {
	for _, f := range functions {
		if address-f.start >= f.size || f.start < start {
			continue
		}
		if f.start > start {
			names, start = nil, f.start
		}
		names = append(names, f.name)
	}
	return names, start
}

func checkImage(t *testing.T, m *toolchains.Machine, image string) {
	t.Helper()
	functions := listFunctions(t, m, image)
	table := tableOf(t, image, nowhere)
	// mold does not make functions shorter when it makes their code so.
	code := codeIn(t, image)
	addresses := slices.DeleteFunc(places(functions), func(a uint64) bool { return !code(a) })
	for _, address := range addresses {
		names, start := holders(functions, address)
		f, ok := table.Lookup(0, address)
		if !ok || f.Start != start || !slices.Contains(names, f.Raw) || f.From != resolve.Symtab {
			t.Errorf("%#x: %+v, want one of %v at %#x", address, f, names, start)
		}
	}
	if m != toolchains.PPC64 || !strings.Contains(t.Name(), "/mold/") { // whose descriptors addr2line does not find
		agree(t, table, addresses, image, functions, m.Tool("addr2line"))
	}
	if m != toolchains.ARM { // elfutils 0.188 takes functions of Thumb to begin at odd addresses
		agree(t, table, addresses, image, functions, "eu-addr2line")
	}
}

// agree compares with a tool that prints two lines for each address, the first
// of which is the function's name. Where functions overlap, addr2line takes the
// first of them, and eu-addr2line a global one.
func agree(t *testing.T, table *resolve.Table, addresses []uint64, image string, functions []function, tool string) {
	t.Helper()
	var input strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&input, "%#x\n", a)
	}
	lines := strings.Split(tools.Command{Stdin: input.String()}.Output(t, tool, "-f", "-e", image), "\n")
	if len(lines) < 2*len(addresses) {
		t.Fatalf("%s prints %d lines for %d addresses", tool, len(lines), len(addresses))
	}
	others := 0
	for i, a := range addresses {
		f, _ := table.Lookup(0, a)
		got := lines[2*i]
		if got == f.Raw {
			continue
		}
		others++
		if !slices.ContainsFunc(functions, func(f function) bool { return f.name == got && a-f.start < f.size }) {
			t.Errorf("%#x is %q, %s says %q", a, f.Raw, tool, got)
		}
	}
	t.Logf("%s chooses another alias or overlapping function for %d of %d addresses", tool, others, len(addresses))
}

// codeIn reports what lies in a section of code.
func codeIn(t *testing.T, image string) func(address uint64) bool {
	t.Helper()
	f := disk.OpenELF(t, image)
	return func(address uint64) bool {
		return slices.ContainsFunc(f.Sections, func(s *elf.Section) bool {
			return s.Flags&elf.SHF_EXECINSTR != 0 && address-s.Addr < s.Size
		})
	}
}

package resolve_test

import (
	"debug/elf"
	"fmt"
	"maps"
	"math/rand/v2"
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

// randomFunctions writes functions in assembler, each with or without a symbol, a type, a
// size, unwind tables and a label of its own. The section truth has where each begins and
// ends, by the order of the functions.
func randomFunctions(r *rand.Rand, count int) string {
	var s strings.Builder
	chance := func(percent int) bool { return r.IntN(100) < percent }
	fmt.Fprintln(&s, ".text\n.balign 16\n.globl _start\n_start: nop")
	for i := range count {
		named, typed, sized, unwound := chance(70), chance(60), chance(40), chance(60)
		if chance(30) {
			fmt.Fprintln(&s, ".balign 16")
		}
		if named && chance(40) {
			fmt.Fprintf(&s, ".globl f%d\n", i)
		}
		if named && typed {
			fmt.Fprintf(&s, ".type f%d, %%function\n", i)
		}
		fmt.Fprintf(&s, ".Lstart%d:\n", i)
		if named {
			fmt.Fprintf(&s, "f%d:\n", i)
		}
		if unwound {
			fmt.Fprintln(&s, ".cfi_startproc")
		}
		for n := range 1 + r.IntN(6) {
			if n > 0 && chance(10) {
				fmt.Fprintf(&s, "label%d_%d:\n", i, n)
			}
			fmt.Fprintln(&s, "nop")
		}
		if unwound {
			fmt.Fprintln(&s, ".cfi_endproc")
		}
		fmt.Fprintf(&s, ".Lend%d:\n", i)
		if named && sized {
			fmt.Fprintf(&s, ".size f%d, . - f%d\n", i, i)
		}
		fmt.Fprintf(&s, ".pushsection truth, \"a\", %%progbits\n.balign 4\n.4byte .Lstart%d - .\n.4byte .Lend%d - .\n.popsection\n", i, i)
	}
	s.WriteString(".section .note.GNU-stack, \"\", %progbits\n")
	return s.String()
}

// bounds are where a function begins and ends.
type bounds struct{ start, end uint64 }

// truthOf reads the section that says where each function is.
func truthOf(t *testing.T, path string) []bounds {
	t.Helper()
	o := tools.OpenELF(t, path)
	for i := range o.Sections {
		if o.Sections[i].Name != "truth" {
			continue
		}
		data := expect.Value(o.Data(i))(t)
		var all []bounds
		for at := 0; at+8 <= len(data); at += 8 {
			from := func(field int) uint64 { // a distance from the field
				return o.Sections[i].Addr + uint64(field) + uint64(int64(int32(o.Encoding.Order.Uint32(data[field:]))))
			}
			all = append(all, bounds{from(at), from(at + 4)})
		}
		return all
	}
	t.Fatal("no truth")
	return nil
}

// stripping makes other files of an image, as builds and distributions do.
var stripping = []string{
	"cp IN OUT",
	"STRIP -o OUT IN",
	"STRIP -x -o OUT IN",
	"STRIP --strip-unneeded -o OUT IN",
	"LLVM-STRIP -x -o OUT IN",
	"OBJCOPY SOME IN OUT",
	"OBJCOPY --only-keep-debug IN OUT.debug && OBJCOPY --strip-all --add-gnu-debuglink=OUT.debug IN OUT",
	"OBJCOPY -R .eh_frame -R .eh_frame_hdr IN OUT",
}

// strip runs a command of stripping. SOME are flags for some of the symbols.
func strip(t *testing.T, m *toolchains.Machine, command, in, out string, r *rand.Rand) {
	t.Helper()
	var some strings.Builder
	for i := range randomCount {
		if r.IntN(2) == 0 {
			fmt.Fprintf(&some, " --strip-symbol=f%d", i)
		}
	}
	command = strings.NewReplacer("LLVM-STRIP", toolchains.LLVM("llvm-strip"), "STRIP", m.Tool("strip"),
		"OBJCOPY", m.Tool("objcopy"), "SOME", some.String(), "IN", in, "OUT", out).Replace(command)
	tools.Must(t, "sh", "-c", command)
}

const randomCount = 60

// What is said of an address is poorer where symbols, sizes or unwind tables are missing,
// and never wrong: it is the function that holds the address, no function, or marked.
func TestRandomFunctions(t *testing.T) {
	for _, m := range toolchains.Machines {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, append(m.Tools("gcc", "ld", "strip", "objcopy"), toolchains.LLVM("llvm-strip"), "cp")...)
			compared, named := 0, 0
			for seed := range tools.Cases(t, 2) {
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				image := linkRandom(t, m, r)
				truth := truthOf(t, image)
				for _, command := range stripping {
					out := filepath.Join(t.TempDir(), "image")
					strip(t, m, command, image, out, r)
					table := tableOf(t, out, resolve.Options{Path: out})
					for i, f := range truth {
						compared++
						if checkFunction(t, fmt.Sprintf("seed %d, %s: f%d", seed, command, i), table, i, f) {
							named++
						}
					}
				}
			}
			if named < compared/10 {
				t.Errorf("%d of %d functions were named", named, compared)
			}
			t.Logf("%d functions were compared, %d were named", compared, named)
		})
	}
}

// linkRandom links random functions to a program or a library, which exports some.
func linkRandom(t *testing.T, m *toolchains.Machine, r *rand.Rand) string {
	t.Helper()
	directory := t.TempDir()
	in, image := filepath.Join(directory, "in.s"), filepath.Join(directory, "image")
	disk.Write(t, in, randomFunctions(r, randomCount))
	mode := []string{"-no-pie", "-pie", "-shared"}[r.IntN(3)]
	words := []string{mode, "-nostdlib", "-Wl,--build-id", "-o", image, in}
	tools.Must(t, m.Tool("gcc"), append(words, m.LinkFlags...)...)
	return image
}

// checkFunction looks all of a function up, and reports whether it was named.
func checkFunction(t *testing.T, what string, table *resolve.Table, index int, f bounds) (named bool) {
	t.Helper()
	for at := f.start; at < f.end; at += 2 {
		got, ok := table.Lookup(0, at)
		switch {
		case !ok || got.Unsized:
		case got.From.IsSymbol() && got.Raw == fmt.Sprintf("f%d", index) && got.Start == f.start:
			named = true
		case !got.From.IsSymbol() && got.Start == f.start:
		default:
			t.Errorf("%s, %#x of %#x to %#x: got %+v", what, at, f.start, f.end, got)
		}
	}
	return named
}

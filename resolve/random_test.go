package resolve_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/resolve"
)

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

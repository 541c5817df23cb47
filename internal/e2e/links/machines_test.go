package links

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

func crossCompiler(m *machine, cc toolchains.Compiler, flags ...string) compiler {
	return compiler{machine: m, cc: cc, flags: append(flags, "-fPIC")}
}

// TestForeign links for the other machines, and runs under their emulators.
func TestForeign(t *testing.T) {
	var all []combination
	for _, m := range foreign {
		all = append(all, every([]compiler{
			crossCompiler(m, toolchains.GCC, "-O2"),
			crossCompiler(m, toolchains.Clang, "-Os", "-ffunction-sections"),
		}, layouts, modes)...)
	}
	runCombinations(t, all)
}

// TestI386 links what has conditional tail calls, and what calls through the global offset
// table: code that is compiled for a fixed address, and code that is not.
func TestI386(t *testing.T) {
	fixed := []string{"-fno-pic", "-fno-pie"}
	runCombinations(t, every([]compiler{
		{machine: i386, cc: toolchains.GCC, flags: append([]string{"-O2"}, fixed...)},
		{machine: i386, cc: toolchains.OldClang, flags: append([]string{"-Os"}, fixed...)},
		{machine: i386, cc: toolchains.Clang, flags: append([]string{"-O2"}, fixed...)},
	}, []layout{pairs}, []mode{modeExe, modeStatic}))
	runCombinations(t, every([]compiler{
		crossCompiler(i386, toolchains.GCC, "-O2", "-fcf-protection=full"),
		crossCompiler(i386, toolchains.GCC, "-O2", "-fno-plt", "-DNO_REPEAT"),
		crossCompiler(i386, toolchains.OldClang, "-O2"),
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}

// TestLoong64 links what has calls of two instructions, which linkers may make one of, and
// what compilers say must not be relaxed.
func TestLoong64(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(loong64, toolchains.GCC, "-O2", "-mcmodel=medium"),
		crossCompiler(loong64, toolchains.GCC, "-Os", "-mno-relax"),
		crossCompiler(loong64, toolchains.Clang, "-O2", "-mcmodel=medium"),
	}, layouts, []mode{modePIE, modeShared}))
}

// TestRiscv64WithoutRelaxation links what compilers say must not be relaxed.
func TestRiscv64WithoutRelaxation(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(riscv64, toolchains.GCC, "-O2", "-mno-relax"),
		crossCompiler(riscv64, toolchains.OldClang, "-Os", "-mno-relax"),
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}

// TestArm links both instruction sets with compilers that begin in the other one.
func TestArm(t *testing.T) {
	runCombinations(t, every([]compiler{
		{machine: arm, cc: toolchains.GCC, flags: []string{"-Os", "-marm", "-fno-pic"}},
		{machine: arm, cc: toolchains.OldClang, flags: []string{"-Os", "-mthumb", "-fno-pic"}},
	}, []layout{pairs}, []mode{modeExe, modeStatic}))
	runCombinations(t, every([]compiler{
		crossCompiler(arm, toolchains.GCC, "-O2", "-marm"),
		crossCompiler(arm, toolchains.Clang, "-O2", "-mthumb"),
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}

// evenFunction takes the bit for Thumb off a function's symbol, and notes it.
func (im *image) evenFunction(s *elf.Symbol) {
	if im.file.Machine == elf.EM_ARM && s.Value&1 != 0 {
		s.Value &^= 1
		im.thumb[s.Value] = true
	}
}

// ofSameSet are flags for code of the instruction set that a compiler makes, lest linkers put
// something between a call and a stub: gcc is built for Thumb, and clang makes A32.
func (c compiler) ofSameSet() []string {
	a32 := c.cc != toolchains.GCC && !slices.Contains(c.flags, "-mthumb") || slices.Contains(c.flags, "-marm")
	if c.machine.Machine == toolchains.ARM && a32 {
		return []string{"-marm"}
	}
	return nil
}

// TestArmBigEndian links big-endian code, which linkers swap (BE8), and runs it beside its
// twin. There is no C library for it. Without --be8 code stays big-endian, which the emulator
// does not run.
func TestArmBigEndian(t *testing.T) {
	lld := toolchains.LLVM("ld.lld") + " -m armelfb_linux_eabi --be8"
	bfd := arm.Tool("ld.bfd") + " -EB"
	for _, cc := range []string{arm.Tool("gcc") + " -mbig-endian", toolchains.LLVM("clang") + " --target=armv7eb-linux-gnueabihf"} {
		for _, set := range []string{"-marm", "-mthumb"} {
			t.Run(cc+set, func(t *testing.T) {
				t.Parallel()
				b := bigEndian{t, t.TempDir(), append(strings.Fields(cc), set, "-Os", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fno-pic")}
				tools.Need(t, b.cc[0], toolchains.QEMU("armeb"), arm.Tool("ld.bfd"), toolchains.LLVM("ld.lld"))
				program := b.compile("program.o", filepath.Join("testdata", "be8.c"), "-DRECORDS")
				b.write("stubs.c", "void __dtrace_probe_a(int x) {}\nint __dtrace_isenabled_b(void) { return 0; }\n")
				twin := b.link(bfd+" --be8", b.compile("twin.o", filepath.Join("testdata", "be8.c")), b.compile("stubs.o", filepath.Join(b.directory, "stubs.c")))
				want := tools.Must(t, toolchains.QEMU("armeb"), twin)
				converted := convert(t, program)
				for _, ld := range []string{bfd + " --be8", lld, bfd} {
					b.check(b.link(ld, converted), want, strings.Contains(ld, "--be8"))
				}
			})
		}
	}
}

// bigEndian is a directory in which a compiler builds.
type bigEndian struct {
	*testing.T
	directory string
	cc        []string
}

func (b bigEndian) compile(name, source string, flags ...string) string {
	b.Helper()
	out := filepath.Join(b.directory, name)
	tools.Must(b.T, b.cc[0], append(append(b.cc[1:len(b.cc):len(b.cc)], flags...), "-c", source, "-o", out)...)
	return out
}

func (b bigEndian) write(name, text string) {
	b.Helper()
	disk.Write(b, filepath.Join(b.directory, name), text)
}

func (b bigEndian) link(ld string, objects ...string) string {
	b.Helper()
	out := filepath.Join(b.directory, strconv.Itoa(len(ld))+"-"+filepath.Base(objects[0])+".elf")
	words := append(strings.Fields(ld), append(objects, "-o", out)...)
	tools.Must(b.T, words[0], words[1:]...)
	return out
}

// check compares what a program prints with its twin's, and its records with what is listed.
func (b bigEndian) check(image, want string, runs bool) {
	b.Helper()
	var records, kinds []string
	for _, l := range list(b.T, image) {
		expect.Equal(b, "disabled", l.State, "%s: %+v", image, l)
		probe := "a"
		if strings.HasPrefix(l.Kind, "isenabled") {
			probe = "b"
		}
		records, kinds = append(records, fmt.Sprintf("%08s %s", strings.TrimPrefix(l.Address, "0x"), probe)), append(kinds, l.Kind)
	}
	expect.Equal(b, 4, len(records), "%s: sites %q of kinds %q", image, records, kinds)
	tools.Must(b.T, converter, "check", image)
	if !runs {
		return
	}
	got, ok := strings.CutPrefix(tools.Must(b.T, toolchains.QEMU("armeb"), image), want)
	if !ok {
		b.Errorf("%s prints %q, and its twin %q", image, got, want)
	}
	for _, r := range records {
		if !strings.Contains(got, r+"\n") {
			b.Errorf("%s: no record of %s in %q", image, r, got)
		}
	}
	expect.Equal(b, len(records), strings.Count(got, "\n"), "%s", image)
}

// followDescriptors gives functions the addresses of their code, where their symbols stand
// for descriptors.
func (im *image) followDescriptors(t *testing.T) {
	t.Helper()
	if im.file.Type == elf.ET_REL {
		return
	}
	for i := range im.symbols {
		s := &im.symbols[i]
		if in := int(s.Section); elf.ST_TYPE(s.Info) == elf.STT_FUNC && in < len(im.file.Sections) && im.file.Sections[in].Name == ".opd" {
			s.Value = im.word(t, s.Value).value
		}
	}
}

// firstAddress matches the address of a branch's target.
var firstAddress = regexp.MustCompile(`^([0-9a-f]+) <`)

// throughTOC returns the name of the stub whose address the code that a branch leads to
// loads from the table of contents, as code that linkers write does, or the empty string.
func (im *image) throughTOC(t *testing.T, operands string) string {
	t.Helper()
	match := firstAddress.FindStringSubmatch(operands)
	got := im.file.Section(".got")
	if im.file.Machine != elf.EM_PPC64 || match == nil || im.file.Section(".dynsym") == nil {
		return ""
	}
	to := expect.Value(strconv.ParseUint(match[1], 16, 64))(t, "%s: %q", im.path, operands)
	if to == 0 {
		return "" // what is weak, and nowhere
	}
	insn := func(i uint64) uint32 { return im.file.ByteOrder.Uint32(im.bytes(t, to+4*i, 4)) }
	low := func(i uint32) uint64 { return uint64(int64(int16(i))) }
	first, second, third := insn(0), insn(1), insn(2)
	slot := uint64(0)
	switch {
	case first>>16 == 0x0410 && second>>16 == 0xe580: // pld r12, slot
		slot = to + uint64(int64(first)<<46>>30|int64(second&0xffff))
	case first>>16 != 0xf841 || got == nil: // std r2, n(r1)
		return ""
	case second>>16 == 0xe982: // ld r12, slot(r2)
		slot = got.Addr + 0x8000 + low(second)
	case second>>26 == 15 && (third>>26 == 58 || third>>26 == 14): // addis r12, r2, slot@ha; ld or addi
		slot = got.Addr + 0x8000 + low(second)<<16 + low(third)
	}
	return im.slots(t)[slot]
}

// slots returns the names of what the loader puts into the slots of calls.
func (im *image) slots(t *testing.T) map[uint64]string {
	t.Helper()
	names := expect.Value(im.file.DynamicSymbols())(t, "%s", im.path)
	slots := map[uint64]string{}
	for _, s := range im.file.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data := expect.Value(s.Data())(t, "%s: %s", im.path, s.Name)
		for ; len(data) >= 24; data = data[24:] {
			if info := im.number(data[8:16]); elf.R_PPC64(uint32(info)) == elf.R_PPC64_JMP_SLOT && info>>32 != 0 {
				slots[im.number(data[:8])] = names[info>>32-1].Name
			}
		}
	}
	return slots
}

// power10 is ppc64le with the linkers that know code for power10: not mold, nor gold, which
// restores no pointer to the table of contents behind calls of such code. What it links of
// gcc 14's does not run unconverted either.
var power10 = func() *machine {
	m := *ppc64le
	m.linkers = slices.DeleteFunc(slices.Clone(m.linkers), func(l toolchains.Linker) bool { return l.Family == "mold" || l.Family == "gold" })
	return &m
}()

// TestPower10 links code that names places by their distance, which has tail calls and no
// slots for the pointer to the table of contents, with code that has none and all.
func TestPower10(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(power10, toolchains.Clang, "-Os", "-mcpu=pwr10"),
		{machine: power10, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}, calls: []string{"-mcpu=power10"}},
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}

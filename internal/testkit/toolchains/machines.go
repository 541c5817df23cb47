// Package toolchains is the one table of what tests compile, link and run with:
// machines, and the compilers, linkers and emulators of others for each.
package toolchains

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// Machine is what programs are built for and run on.
type Machine struct {
	Name      string // as arch.Traits has it
	Triplet   string // GNU's, by which Debian calls the cross tools; "" for the native one
	QEMU      string // the emulator of its programs, "" where they run by themselves
	CPU       string // the processor that is emulated, "" for the emulator's own choice
	Emulation string // by which the option -m of linkers calls it
	Relaxes   bool   // linkers shorten its code, so that nothing stays where it was
	LinkFlags []string
	Assembler []string                      // options that gcc starts the assembler with
	without   []string                      // the linkers that do not know it
	registers bool                          // clang crashes over operands of inline assembly in memory (constraint o)
	lacks     []string                      // the compilers that the suite has none of for it
	cannot    map[Feature]string            // what it has not, whatever links, and why
	linker    map[string]map[Feature]string // what a linker cannot do for it, by its name, and why
}

// A machine in package arch is a line here, and a line here is one there.
var (
	AMD64 = &Machine{Name: "amd64", Emulation: "elf_x86_64"}
	ARM   = &Machine{Name: "arm", Triplet: "arm-linux-gnueabihf", QEMU: QEMU("arm"), Emulation: "armelf_linux_eabi", Assembler: []string{"-march=armv7-a"},
		cannot: noStartFile}
	ARM64 = &Machine{Name: "arm64", Triplet: "aarch64-linux-gnu", QEMU: QEMU("aarch64"), Emulation: "aarch64linux"}
	I386  = &Machine{Name: "i386", Triplet: "i686-linux-gnu", QEMU: QEMU("i386"), Emulation: "elf_i386",
		cannot: map[Feature]string{StaticPIE: notStarted}}
	PPC64 = &Machine{Name: "ppc64", Triplet: "powerpc64-linux-gnu", QEMU: QEMU("ppc64"), Emulation: "elf64ppc",
		without: []string{"old-lld", "lld"}, cannot: noStartFile, linker: noREL32()}
	PPC64LE = &Machine{Name: "ppc64le", Triplet: "powerpc64le-linux-gnu", QEMU: QEMU("ppc64le"), CPU: "power10", Emulation: "elf64lppc",
		cannot: noStartFile, linker: noREL32()}
	// As clang's driver does, -X: lld keeps labels named .L otherwise.
	LOONG64 = &Machine{Name: "loong64", Triplet: "loongarch64-linux-gnu", QEMU: QEMU("loongarch64"), Emulation: "elf64loongarch",
		Relaxes: true, LinkFlags: []string{"-Wl,-X"}, registers: true, without: notLoong64(), lacks: noLoong64(),
		linker: loong64Linkers()}

	RISCV64 = &Machine{Name: "riscv64", Triplet: "riscv64-linux-gnu", QEMU: QEMU("riscv64"), Emulation: "elf64lriscv",
		Relaxes: true, LinkFlags: []string{"-Wl,-X"}, without: []string{"gold"},
		cannot: noStartFile}

	S390X = &Machine{Name: "s390x", Triplet: "s390x-linux-gnu", QEMU: QEMU("s390x"), Emulation: "elf64_s390",
		without: beforeLLD18(), cannot: noStartFile}

	all = []*Machine{AMD64, ARM, ARM64, I386, LOONG64, PPC64, PPC64LE, RISCV64, S390X}
)

// noREL32 is mold's, of before version 2, on 64-bit PowerPC.
func noREL32() map[string]map[Feature]string {
	if since("trixie") {
		return nil
	}
	return map[string]map[Feature]string{"mold": {Distances: "it knows R_PPC64_REL32 in unwind tables alone"}}
}

var noStartFile = map[Feature]string{StaticPIE: "its C library has no rcrt1.o"}

const notStarted = "what lld links does not start"

// Machines are those that the suite has gcc and a C library for. Of others, clang and lld make
// images that run by themselves.
var Machines = slices.DeleteFunc(All(), func(m *Machine) bool { return !m.Has(GCC) })

// All returns all machines.
func All() []*Machine { return slices.Clone(all) }

// notLoong64 returns the linkers of the suite that do not know loong64.
func notLoong64() []string {
	if since("trixie") {
		return []string{"gold"}
	}
	return []string{"bfd", "gold", "old-lld", "mold"}
}

// loong64Linkers says what lld 19 cannot do for loong64, and 23 can.
func loong64Linkers() map[string]map[Feature]string {
	if since("sid") {
		return nil
	}
	return map[string]map[Feature]string{"lld": {Static: notStarted, StaticPIE: notStarted}}
}

// noLoong64 returns the compilers of the suite that do not know loong64.
func noLoong64() []string {
	if since("trixie") {
		return nil
	}
	return []string{GCC.Name, NamedGCC.Name, OldClang.Name}
}

// beforeLLD18 returns the linkers of the suite that are an lld older than 18.
func beforeLLD18() []string {
	if since("sid") {
		return nil
	}
	return []string{"old-lld"}
}

// Foreign returns the machines whose programs run under an emulator.
func Foreign() []*Machine {
	return slices.DeleteFunc(slices.Clone(Machines), (*Machine).Native)
}

// Native reports whether a machine's tools are those without a prefix.
func (m *Machine) Native() bool { return m.Triplet == "" }

// Tool returns a program of binutils or of gcc for the machine.
func (m *Machine) Tool(name string) string {
	if m.Native() {
		return name
	}
	return m.Triplet + "-" + name
}

// Tools is Tool for several.
func (m *Machine) Tools(names ...string) []string {
	var all []string
	for _, name := range names {
		all = append(all, m.Tool(name))
	}
	return all
}

// Sysroot returns the directory of the machine's C library.
func (m *Machine) Sysroot() string {
	if m.Native() {
		return "/"
	}
	return "/usr/" + m.Triplet
}

// Command returns what runs a program of the machine.
func (m *Machine) Command(program string, args ...string) []string {
	var words []string
	if m.QEMU != "" {
		words = []string{m.QEMU, "-L", m.Sysroot()}
		if m.CPU != "" {
			words = append(words, "-cpu", m.CPU)
		}
	}
	return append(append(words, program), args...)
}

// Need is tools.Need of what compiles and links for the machine, and runs it.
func (m *Machine) Need(t testing.TB) {
	t.Helper()
	if m.Has(GCC) {
		tools.Need(t, m.Tools("gcc", "g++")...)
	}
	if m.QEMU != "" {
		tools.Need(t, m.QEMU)
	}
}

// Cannot says why an image with a feature is not made for the machine by a linker,
// "" where it is.
func (m *Machine) Cannot(l Linker, f Feature) string {
	return cmp.Or(l.Cannot[f], m.cannot[f])
}

// Has reports whether the suite has a compiler for the machine.
func (m *Machine) Has(c Compiler) bool { return !slices.Contains(m.lacks, c.Name) }

// Compilers returns those of Compilers that the suite has for the machine.
func (m *Machine) Compilers() []Compiler {
	return slices.DeleteFunc(slices.Clone(Compilers), func(c Compiler) bool { return !m.Has(c) })
}

// TakesMemory reports whether inline assembly of a compiler takes operands in memory, as
// SystemTap's macros name them.
func (m *Machine) TakesMemory(c Compiler) bool { return !c.Clang || !m.registers }

// Linkers returns the linkers that know the machine.
func (m *Machine) Linkers() []Linker {
	var all []Linker
	for _, l := range linkers {
		if !slices.Contains(m.without, l.Name) {
			all = append(all, m.own(l))
		}
	}
	return all
}

// Newest returns the linkers that know the machine, of each the newest version.
func (m *Machine) Newest() []Linker {
	return slices.DeleteFunc(m.Linkers(), func(l Linker) bool { return l.old })
}

// Linker returns one of Linkers by its name.
func (m *Machine) Linker(name string) Linker {
	for _, l := range m.Linkers() {
		if l.Name == name {
			return l
		}
	}
	panic(fmt.Sprintf("%s has no linker %q", m.Name, name))
}

// own returns a linker as the machine has it: GNU's linkers are built for one machine.
func (m *Machine) own(l Linker) Linker {
	if l.Package == binutils || l.Package == Debian.gold {
		l.Path = m.Tool(l.Path)
		l.Package = m.packageOf(l.Package)
	}
	if lacks := m.linker[l.Name]; lacks != nil {
		l.Cannot = maps.Clone(l.Cannot)
		maps.Copy(l.Cannot, lacks)
	}
	return l
}

// packageOf is Debian's package of a GNU tool for the machine.
func (m *Machine) packageOf(name string) string {
	if m.Native() {
		return name
	}
	return name + "-" + m.Triplet
}

// Covers fails a test that lists machines by hand, and has forgotten one.
func Covers(t testing.TB, listed ...*Machine) {
	t.Helper()
	for _, m := range Machines {
		if !slices.Contains(listed, m) {
			t.Errorf("%s is missing among what is tested", m.Name)
		}
	}
}

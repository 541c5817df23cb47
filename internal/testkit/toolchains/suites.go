package toolchains

import (
	_ "embed"
	"fmt"
	"os"
	"strings"
)

// Suite is a suite of Debian, by what its tools are called.
type Suite struct {
	Name    string
	GCC     string // the version of gcc
	OldLLVM string // the version of the older clang, lld and tools
	LLVM    string // the version of the newer ones
	gold    string // the package of gold
	QEMU    string // the package of the emulators of programs
}

//go:embed suites.tsv
var table string

// Suites are all of the table, oldest first. The committed objects are made by the
// first one's tools.
var Suites = read(table)

// Debian is the suite whose tools tests use: the one that the environment variable
// SDTCONVERT_SUITE names, as it is within `scripts/test --suite', or else the first.
var Debian = named(os.Getenv("SDTCONVERT_SUITE"))

func read(table string) []Suite {
	var all []Suite
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		c := strings.Fields(line)
		all = append(all, Suite{Name: c[0], GCC: c[1], OldLLVM: c[2], LLVM: c[3], gold: c[4], QEMU: c[5]})
	}
	return all
}

func named(name string) Suite {
	for _, s := range Suites {
		if name == s.Name || name == "" {
			return s
		}
	}
	panic(fmt.Sprintf("SDTCONVERT_SUITE is %q, which toolchains/suites.tsv does not have", name))
}

// since reports whether Debian is the suite of a name, or newer.
func since(name string) bool {
	for _, s := range Suites {
		if s.Name == name {
			return true
		}
		if s == Debian {
			return false
		}
	}
	panic("suites.tsv does not have " + name)
}

// QEMU returns the emulator of programs of a machine, by its name there.
func QEMU(machine string) string {
	// The package's suffix is that of its programs, too.
	return "qemu-" + machine + strings.TrimPrefix(Debian.QEMU, "qemu-user")
}

// LLVM returns a tool of the newer LLVM, as in llvm-readelf or ld.lld.
func LLVM(tool string) string { return tool + "-" + Debian.LLVM }

// OldLLVM returns a tool of the older one.
func OldLLVM(tool string) string { return tool + "-" + Debian.OldLLVM }

// LLVMPrograms returns the directory that has the newer LLVM's tools by their plain names.
func LLVMPrograms() string { return "/usr/lib/llvm-" + Debian.LLVM + "/bin" }

// Compiler is a C and a C++ compiler of others.
type Compiler struct {
	Name string // of the C compiler
	CXX  string // of the C++ compiler
	// Clang is one for all machines; of gcc there is one for each.
	Clang bool
}

var (
	GCC      = Compiler{Name: "gcc", CXX: "g++"}
	NamedGCC = Compiler{Name: "gcc-" + Debian.GCC, CXX: "g++-" + Debian.GCC} // by its version
	OldClang = Compiler{Name: OldLLVM("clang"), CXX: OldLLVM("clang++"), Clang: true}
	Clang    = Compiler{Name: LLVM("clang"), CXX: LLVM("clang++"), Clang: true}

	Compilers = []Compiler{GCC, NamedGCC, OldClang, Clang}
)

// CC returns the command of a machine's C compiler: its program, and the flags that
// choose the machine.
func (m *Machine) CC(c Compiler) []string { return m.compiler(c, c.Name) }

// CXX returns the command of a machine's C++ compiler.
func (m *Machine) CXX(c Compiler) []string { return m.compiler(c, c.CXX) }

func (m *Machine) compiler(c Compiler, program string) []string {
	switch {
	case !c.Clang:
		return []string{m.Tool(program)}
	case m.Native():
		return []string{program}
	}
	return []string{program, "--target=" + m.Triplet}
}

// Packages are Debian's packages of a compiler for a machine: of C and of C++.
func (m *Machine) Packages(c Compiler) (cc, cxx string) {
	if c.Clang {
		return c.Name, c.Name
	}
	return m.packageOf(c.Name), m.packageOf(c.CXX)
}

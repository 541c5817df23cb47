package toolchains

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

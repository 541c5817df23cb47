package cpp

import (
	"slices"
	"strings"

	"sdtconvert/internal/provider/token"
)

// The macros that tell systems apart, as a compiler for Linux has them.
var (
	present = []string{"__STDC__", "__linux__", "__linux", "__gnu_linux__", "__unix__", "__unix", "__ELF__"}
	absent  = []string{
		"__APPLE__", "__MACH__", "__FreeBSD__", "__FreeBSD_kernel__", "__NetBSD__", "__OpenBSD__", "__DragonFly__",
		"__sun", "__sun__", "__SVR4", "__svr4__", "_WIN32", "_WIN64", "__CYGWIN__", "__HAIKU__", "__QNX__",
		"_AIX", "__hpux", "__osf__", "__sgi", "_MSC_VER", "__cplusplus", "__ASSEMBLER__", "_KERNEL", "__KERNEL__",
		"__SUNPRO_C", "__SUNPRO_CC",
	}
)

// predefine defines what is defined before the file begins.
func (p *Preprocessor) predefine() {
	one := token.Token{Kind: token.Number, Text: "1"}
	for _, name := range present {
		p.macros[name] = &macro{name: name, body: []token.Token{one}}
	}
	for _, d := range p.o.Definitions {
		name, value, ok := strings.Cut(d.Text, "=")
		if !ok {
			value = "1"
		}
		if d.Undef {
			delete(p.macros, name)
			continue
		}
		p.define(token.Line(token.Pos{File: "-D", Line: 1, Column: 1}, name+" "+value))
	}
}

// defined reports whether a name is one of a macro. Of those that are reserved for
// compilers it asks for one, but for what tells systems apart and for the guards
// of headers.
func (p *Preprocessor) defined(t token.Token) bool {
	_, ok := p.macros[t.Text]
	if !ok && reserved(t.Text) && !slices.Contains(absent, t.Text) && !p.undefines(t.Text) {
		p.needsCompiler(t.Pos, "whether %s is defined only a compiler knows", t.Text)
	}
	return ok
}

// undefines reports whether the command line says that a name is no macro.
func (p *Preprocessor) undefines(name string) bool {
	return slices.Contains(p.o.Definitions, Definition{name, true})
}

// reserved reports whether a name is one that compilers define (C11, 7.1.3), and no guard of
// a header.
func reserved(name string) bool {
	if len(name) < 2 || name[0] != '_' || name[1] != '_' && (name[1] < 'A' || name[1] > 'Z') {
		return false
	}
	guard := strings.TrimRight(name, "_")
	return !strings.HasSuffix(guard, "_H") && !strings.HasSuffix(guard, "_INCLUDED")
}

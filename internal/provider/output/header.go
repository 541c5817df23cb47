// Package output writes what builds use of providers: headers for sources, and objects for the
// link, with semaphores or in DTrace's object format.
package output

// The C header of providers has a macro that fires each probe, and
// one that tells whether anybody traces it.
//
// Projects edit such headers with scripts that were made for those of other programs, so
// its lines have to be as theirs: at most one name of a macro of a provider in a line, the
// macro's parameters argN and alone in the line with its name, what it stands for in
// the next, and no type of an argument but in remarks. Macros of the
// header's own are in small letters, which no such script looks for, and so are names that
// sources must not have.

import (
	_ "embed" // for the macros
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"

	"sdtconvert/internal/notes"
	"sdtconvert/internal/provider"
)

// HeaderForm is what the macros of a header do.
type HeaderForm uint8

const (
	// NotesHeader makes probes that tracers of Linux find in the notes of a program, and
	// semaphores that are defined where they are used.
	NotesHeader HeaderForm = iota
	// SharedHeader is Notes with semaphores that something else defines, and that other modules
	// see: those of SystemTap's STAP_SDT_V2.
	SharedHeader
	// StubsHeader makes calls of stubs, which a conversion disables.
	StubsHeader
	// CallsHeader is Stubs with the names that DTrace's own headers have for them.
	CallsHeader
)

//go:embed notes.h
var notesText string

//go:embed stubs.h
var stubsText string

// WriteHeader writes the header of providers for a file of the given name, which is all that it
// has of its path.
func WriteHeader(path string, providers []*provider.Provider, form HeaderForm) []byte {
	w := &headerWriter{form: form}
	for _, p := range providers {
		w.provider(p)
	}
	body := w.out.String()
	sum := fnv.New64a()
	sum.Write([]byte(body))
	own := fmt.Sprintf("_sdtp_header_%016x", sum.Sum64())

	var b strings.Builder
	b.WriteString("/* Made by sdtconvert from a provider file: changes are lost. */\n")
	guard := guardName(path)
	fmt.Fprintf(&b, "#ifndef %s\n#define %s\n#endif\n\n", guard, guard)
	if form == StubsHeader || form == CallsHeader {
		b.WriteString(stubsText)
	} else {
		b.WriteString(macros())
	}
	// The guard of a file's name is only for sources that ask: two headers of one name may
	// have different probes.
	fmt.Fprintf(&b, "\n#ifndef %s\n#define %s 1\n%s\n#endif\n", own, own, body)
	return []byte(b.String())
}

// guardName returns the macro that headers of other programs define, too.
func guardName(path string) string {
	name := []byte("_" + strings.ToUpper(filepath.Base(path)))
	for i, c := range name {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			name[i] = '_'
		}
	}
	return string(name)
}

// each joins what f makes of 1 to n.
func each(n int, separator string, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i + 1)
	}
	return strings.Join(parts, separator)
}

func numbered(prefix string) func(int) string {
	return func(i int) string { return fmt.Sprint(prefix, i) }
}

// macros returns the macros for notes, one for each number of arguments. No macro takes
// any number of them, which C90 has not.
func macros() string {
	var b strings.Builder
	ours, none, _ := strings.Cut(notesText, "#else /* no notes */\n")
	b.WriteString(ours)
	for n := range provider.MaxArgs + 1 {
		described := each(n, " _sdtp_next ", func(i int) string { return fmt.Sprintf("_sdtp_arg(%d)", i) })
		operands := each(n, ", ", func(i int) string { return fmt.Sprintf("_sdtp_op(%d, x%d)", i, i) })
		points := each(n, "", func(i int) string { return fmt.Sprintf(" || _sdtp_points(x%d)", i) })
		kept := each(n, "", func(i int) string { return fmt.Sprintf("_sdtp_let(%d, x%d) ", i, i) })
		site := func(clobbers string) string {
			return fmt.Sprintf("_sdtp_site_%d(%s, where, s, provider, name%s)", n, clobbers, each(n, "", numbered(", x")))
		}
		fmt.Fprintf(&b, "#define %s \\\n\t_sdtp_asm(_sdtp_begin(s, provider, name) %s _sdtp_end where(s) : : \\\n\t\t%s clobbers)\n", site("clobbers"), described, operands)
		fmt.Fprintf(&b, "#define %s \\\n\tdo { \\\n\t\t_sdtp_long %sif (_sdtp_always%s) \\\n\t\t\t%s; \\\n\t\telse \\\n\t\t\t%s; _sdtp_long_end \\\n\t} while (0)\n",
			probeMacro(n), kept, points, site("_sdtp_memory"), site("_sdtp_registers"))
	}
	b.WriteString("#else\n")
	for n := range provider.MaxArgs + 1 {
		unevaluated := each(n, "", func(i int) string { return fmt.Sprintf("(void)(x%d); ", i) })
		fmt.Fprintf(&b, "#define %s \\\n\tdo { if (0) { %s} } while (0)\n", probeMacro(n), unevaluated)
	}
	b.WriteString(none)
	return b.String()
}

func probeMacro(n int) string {
	return fmt.Sprintf("_sdtp_probe_%d(where, s, provider, name%s)", n, each(n, "", numbered(", x")))
}

type headerWriter struct {
	out  strings.Builder
	form HeaderForm
}

func (w *headerWriter) provider(p *provider.Provider) {
	for _, probe := range p.Probes {
		fmt.Fprintf(&w.out, "\n/* %s:::%s(%s) */\n", p.Name, probe.Name, each(len(probe.Args), ", ", func(i int) string { return probe.Args[i-1].Type }))
		if w.form == StubsHeader || w.form == CallsHeader {
			w.stubs(p.Name, probe)
		} else {
			w.notes(p.Name, probe)
		}
	}
}

// defineMacro writes a macro. Its name is alone in a line, for scripts.
func (w *headerWriter) defineMacro(macro string, params int, text string) {
	fmt.Fprintf(&w.out, "#define %s(%s) \\\n\t%s\n", macro, each(params, ", ", numbered("arg")), text)
}

func (w *headerWriter) notes(name string, probe *provider.Probe) {
	semaphore := notes.SemaphoreName(name, probe.Name)
	where, seen := "_sdtp_here", "_sdtp_hidden"
	if w.form == SharedHeader {
		where, seen = "_sdtp_elsewhere", "_sdtp_visible"
	}
	fmt.Fprintf(&w.out, "_sdtp_declare(%s, %s)\n", semaphore, seen)
	w.defineMacro(provider.MacroEnabled(name, probe.Name), 0, fmt.Sprintf("_sdtp_enabled(%s, %s, \"%s\")", where, semaphore, semaphore))
	n := len(probe.Args)
	w.defineMacro(provider.Macro(name, probe.Name), n, fmt.Sprintf("_sdtp_probe_%d(%s, \"%s\", \"%s\", \"%s\"%s)",
		n, where, semaphore, name, probe.Name, each(n, "", func(i int) string { return fmt.Sprintf(", (arg%d)", i) })))
}

func (w *headerWriter) stubs(name string, probe *provider.Probe) {
	id, n := name+"___"+probe.Name, len(probe.Args)
	types, words := "void", "_sdtp_none"
	if n > 0 {
		types = each(n, ", ", func(int) string { return "_sdtp_word_type" })
		words = "(" + each(n, ", ", func(i int) string { return fmt.Sprintf("_sdtp_word_of(arg%d)", i) }) + ")"
	}
	fire, test := "__dtrace_probe_"+id, "__dtrace_isenabled_"+id
	if w.form == CallsHeader {
		fire, test = "__dtrace_"+id, "__dtraceenabled_"+id
	}
	fmt.Fprintf(&w.out, "_sdtp_stub(void, %s, (%s))\n", fire, types)
	fmt.Fprintf(&w.out, "_sdtp_stub(int, %s, (void))\n", test)
	w.defineMacro(provider.MacroEnabled(name, probe.Name), 0, fmt.Sprintf("_sdtp_test(%s)", test))
	w.defineMacro(provider.Macro(name, probe.Name), n, fmt.Sprintf("_sdtp_fire(%s, %s)", fire, words))
}

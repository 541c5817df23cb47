package preprocess

// A compiler of the host's preprocesses for another system as well, without the macros by
// which it tells what it is (-undef), and without the host's headers. The macros by which
// the target's system is known are defined instead. All others that compilers define are
// unknown then, and a file that tests one is refused: -dU of GCC tells which are tested by
// #ifdef, and -Wundef those in other conditions.

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sdtconvert/internal/provider"
)

// Macros that compilers define by which systems are known: those of all that are like Unix, and of
// systems that are not targets.
var (
	common = []string{"__unix__", "__unix", "__ELF__"}
	others = []string{
		"__APPLE__", "__MACH__", "__FreeBSD_kernel__", "__NetBSD__", "__OpenBSD__", "__DragonFly__", "_WIN32", "_WIN64",
		"__CYGWIN__", "__HAIKU__", "__QNX__", "_AIX", "__hpux", "__osf__", "__sgi", "_MSC_VER", "__cplusplus",
		"__ASSEMBLER__", "_KERNEL", "__KERNEL__", "__SUNPRO_C", "__SUNPRO_CC", "_DTRACE_VERSION",
	}
)

// release is a macro whose value is a number of the release.
const release = "__FreeBSD__"

// undefine returns the flags that undefine what a compiler of the host defines, and false
// for one that has not got them.
func (o *Options) undefine(words []string) (flags []string, ok bool) {
	if !o.Target.HasSystem {
		return nil, false
	}
	flags = []string{"-undef", "-nostdinc", "-dU", "-Wundef", "-fno-diagnostics-show-caret"}
	for _, name := range slices.Concat(common, o.Target.System.Macros()) {
		value := "1"
		if name == release { // a test of that is told that only a compiler knows it
			value = "__FreeBSD_version"
		}
		flags = append(flags, "-D"+name+"="+value)
	}
	const probe = "#ifdef __x\n#endif\n"
	out, err := o.run(slices.Concat(words, []string{"-E", "-x", "c"}, flags, []string{"-"}), probe, io.Discard)
	return flags, err == nil && strings.Contains(string(out), "#undef __x")
}

// undefWarning is what -Wundef says of a condition.
var undefWarning = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^([^\n]+?): [^\n]*"(\w+)"[^\n]*\[-Wundef\]$`)
})

// checkForeign finds the macros in text and in what the compiler has said that are tested,
// and that only a compiler for the target knows.
func (o *Options) checkForeign(path, text, messages string) error {
	scanner := provider.NewScanner(path, text)
	for {
		t, ok := scanner.Next()
		if !ok {
			break
		}
		if words := strings.Fields(t.Text); t.Kind == provider.DirectiveToken && len(words) == 2 && words[0] == "undef" {
			if err := o.checkMacro(t.Pos.File, words[1]); err != nil { // its line is not exact
				return err
			}
		}
	}
	for _, m := range undefWarning().FindAllStringSubmatch(messages, -1) {
		place := m[1]
		if strings.HasPrefix(place, "<") { // the command line, whose macro the file tests
			place = path
		}
		if err := o.checkMacro(place, m[2]); err != nil {
			return err
		}
	}
	return nil
}

// checkMacro refuses the test of a macro that only a compiler knows.
func (o *Options) checkMacro(place, name string) error {
	known := slices.Concat(others, provider.Linux.Macros(), provider.FreeBSD.Macros(), provider.Illumos.Macros())
	if !reserved(name) || slices.Contains(known, name) || slices.Contains(o.Flags, "-U"+name) {
		return nil
	}
	return fmt.Errorf("%s: whether %s is defined only a compiler for %s knows; name one with CC or -x cpppath, or give -U %s",
		place, name, o.Target.name(), name)
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

// maxMessages is how many bytes of a compiler's messages are kept.
const maxMessages = 1 << 20

// messages is what a compiler says of a file.
type messages struct{ strings.Builder }

// Write implements io.Writer. What is too much is dropped.
func (m *messages) Write(p []byte) (int, error) {
	m.Builder.Write(p[:min(len(p), maxMessages-m.Len())])
	return len(p), nil
}

// passOn writes them, without those that the user has not asked for.
func (m *messages) passOn(w io.Writer) {
	dropped := false
	for line := range strings.Lines(m.String()) {
		dropped = undefWarning().MatchString(line) || dropped && strings.Contains(line, ": note: ")
		if !dropped {
			io.WriteString(w, line)
		}
	}
}

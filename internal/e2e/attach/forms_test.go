package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// systemTap is the directory of sys/sdt.h, which compilers for other machines do not look into by themselves.
const systemTap = "/usr/include/x86_64-linux-gnu"

// TestOperandForms compiles arguments of each kind, static and thread-local variables, elements, bit-fields and parts of
// structures, with SystemTap's macros and with ours. gdb reads each operand that this makes at its site: check names
// those of SystemTap's that gdb does not read, and no others, and there are none of ours.
func TestOperandForms(t *testing.T) {
	tools.Need(t, "gdb-multiarch", "readelf")
	if _, err := os.Stat(systemTap + "/sys/sdt.h"); err != nil {
		tools.Unavailable(t, "no sys/sdt.h")
	}
	header := t.TempDir()
	tools.Must(t, converter, "provider", "-h", "-s", filepath.Join("testdata", "forms.d"), "-o", filepath.Join(header, "forms.h"))
	for _, m := range product.Some(t.Name(), toolchains.Machines, 3) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			m.Need(t)
			f := &forms{T: t, machine: m, directory: t.TempDir()}
			// "g" is what sys/sdt.h recommends for many arguments.
			theirs := f.link("theirs", append(f.compile(m.CC, "-idirafter", systemTap), f.compile(m.CC, "-idirafter", systemTap, "-DSTAP_SDT_ARG_CONSTRAINT=g")...))
			converted := f.convert(append(f.compile(m.CC, "-DSDT", "-I"+include), f.compile(m.CXX, "-xc++", "-DSDT", "-I"+include)...))
			ours := f.link("ours", slices.Concat(converted, f.compile(m.CC, "-DHEADER", "-I"+header), f.compile(m.CXX, "-xc++", "-DHEADER", "-I"+header)))
			f.readsUnlessReported(theirs)
			f.readsUnlessReported(ours)
			if out := tools.Must(t, converter, "check", "--allow=early-semaphore", ours); finding.MatchString(out) {
				t.Errorf("arguments of our headers: %s", out)
			}
		})
	}
}

// forms compiles and links testdata/forms.c for a machine.
type forms struct {
	*testing.T
	machine   *toolchains.Machine
	directory string
	functions []string // since the last link
}

// compile compiles the source with each compiler, at each level, with and without PIC, and with names of variables where
// gcc prefers that of their section.
func (f *forms) compile(language func(toolchains.Compiler) []string, flags ...string) (objects []string) {
	f.Helper()
	commands := [][]string{language(toolchains.GCC), language(toolchains.Clang)}
	tools.Need(f.T, toolchains.Clang.Name, toolchains.Clang.CXX)
	switch f.machine {
	case toolchains.ARM: // where gcc's choice is Thumb
		commands = append(commands, append(language(toolchains.GCC), "-marm"))
	case toolchains.PPC64:
		commands[1] = append(commands[1], "-mabi=elfv1")
	}
	for _, command := range commands {
		for _, level := range []string{"-O0", "-O1", "-O2"} {
			if level == "-O1" && slices.Contains(flags, "-xc++") {
				continue
			}
			for _, mode := range []string{"-fno-pic", "-fPIC", "-fno-section-anchors"} {
				if mode == "-fno-section-anchors" && (strings.HasPrefix(command[0], "clang") || level == "-O0") {
					continue
				}
				function := fmt.Sprintf("forms%d", len(f.functions))
				object := filepath.Join(f.directory, function+".o")
				words := slices.Concat(command, []string{level, mode}, flags, []string{"-DNAME=" + function, "-c", "-o", object, filepath.Join("testdata", "forms.c")})
				tools.Must(f.T, words[0], words[1:]...)
				f.functions, objects = append(f.functions, function), append(objects, object)
			}
		}
	}
	return objects
}

func (f *forms) convert(objects []string) []string {
	f.Helper()
	tools.Must(f.T, converter, append([]string{"--stapsdt"}, objects...)...)
	return objects
}

// link links a program that calls the functions that were compiled since the last one.
func (f *forms) link(name string, objects []string) (program string) {
	f.Helper()
	var source strings.Builder
	for _, function := range f.functions {
		fmt.Fprintf(&source, "void %s(void);\n", function)
	}
	source.WriteString("int main(void)\n{\n")
	for _, function := range f.functions {
		fmt.Fprintf(&source, "\t%s();\n", function)
	}
	source.WriteString("\treturn 0;\n}\n")
	f.functions = nil
	program = filepath.Join(f.directory, name)
	disk.Write(f.T, program+".c", source.String())
	tools.Must(f.T, f.machine.Tool("gcc"), append([]string{"-static", "-no-pie", "-o", program, program + ".c"}, objects...)...)
	return program
}

// readEach has gdb go from site to site, and print of each its address and the last argument of the note: its value, or,
// of a probe whose name does not begin with a v, the word that it leads to.
const readEach = `python
while True:
	try:
		gdb.execute('continue', to_string=True)
		site = int(gdb.parse_and_eval('(unsigned long)$pc'))
	except gdb.error:
		break
	try:
		last = int(gdb.parse_and_eval('$_probe_argc')) - 1
		value = '$_probe_arg%d' % last
		if site in pointers:
			value = '*(long *)' + value
		print('> %d %d' % (site, int(gdb.parse_and_eval(value))))
	except gdb.error as e:
		print('> %d %s' % (site, e))
end
`

// ofFunction is what in operands is different with each function.
var ofFunction = regexp.MustCompile(`\bforms\d+_`)

// readsUnlessReported has gdb read one argument of each form, and each that is a temporary object, and compares with its value and with what check reports.
func (f *forms) readsUnlessReported(program string) {
	f.Helper()
	sites, seen := map[uint64]note{}, map[string]bool{}
	var script, pointers strings.Builder
	notes := notesOf(f.T, program)
	for _, n := range notes {
		form := n.name[:1] + ofFunction.ReplaceAllString(n.args, "")
		if n.provider != "forms" || seen[form] && n.name[0] != 't' {
			continue
		}
		seen[form], sites[n.location] = true, n
		fmt.Fprintf(&script, "break *%d\n", n.location)
		if n.name[0] != 'v' {
			fmt.Fprintf(&pointers, "%d,", n.location)
		}
	}
	if f.machine == toolchains.RISCV64 {
		return // where gdb 13 knows of no arguments
	}
	fmt.Fprintf(&script, "python pointers = {%s}\n", pointers.String())
	if f.machine.QEMU == "" {
		script.WriteString("starti\n")
	} else {
		script.WriteString("target remote " + f.machine.WaitForGDB(f.T, program, "") + "\n")
	}
	script.WriteString(readEach)
	reported := map[string]bool{}
	for _, found := range finding.FindAllStringSubmatch(tools.Must(f.T, converter, "check", "--allow=early-semaphore", program), -1) {
		reported[found[2]] = true
	}
	read := 0
	for _, line := range underGDB(f.T, "gdb-multiarch", script.String(), program) {
		var site uint64
		_, err := fmt.Sscan(line, &site)
		expect.OK(f.T, err)
		n, value := sites[site], line[strings.Index(line, " ")+1:]
		if right := value == n.name[1:]; right == reported[n.args] {
			f.Errorf("%s: gdb reads %s of %s as %q, and check reports it: %t", filepath.Base(program), n.args, n.name, value, reported[n.args])
		}
		read++
	}
	f.Logf("%s: %d operands of %d sites", filepath.Base(program), read, len(notes))
	if read < len(sites) {
		f.Errorf("gdb reads %d of %d sites", read, len(sites))
	}
}

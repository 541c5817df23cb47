package links

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// many is an assembly file with a function in each of very many sections, some
// of them probed, and a main that calls those.
type many struct {
	sections, every int
}

func (n many) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	function := func(section, name, body string) {
		fmt.Fprintf(w, ".section %s,\"ax\",@progbits\n.globl %s\n.type %s,@function\n%s:\n%s\tret\n.size %s, .-%s\n",
			section, name, name, name, body, name, name)
	}
	var main strings.Builder
	for i := range n.sections {
		name, body := fmt.Sprintf("f%d", i), ""
		if i%n.every == 0 {
			body = "\tsub $8, %rsp\n\tcall __dtrace_probe_many\n\tadd $8, %rsp\n"
			fmt.Fprintf(&main, "\tcall %s\n", name)
		}
		function(".text."+name, name, body)
	}
	function(".text.main", "main", "\tsub $8, %rsp\n"+main.String()+"\txor %eax, %eax\n\tadd $8, %rsp\n")
	fmt.Fprintln(w, ".section .note.GNU-stack,\"\",@progbits")
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// object assembles the file.
func (n many) object(t *testing.T, c compiler) string {
	t.Helper()
	source := files.Must(t, "many.s", []string{fmt.Sprint(n)}, n.write)
	return c.compile(t, source)
}

// TestManySections converts an object whose section numbers do not fit in 16
// bits, and one where conversion makes that happen.
func TestManySections(t *testing.T) {
	cases := []struct {
		name string
		many
		before bool // extended section numbers before conversion
	}{
		{"far beyond", many{66000, 500}, true},
		{"crossing", many{65230, 3300}, false},
	}
	for _, tc := range cases {
		for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
			t.Run(tc.name+"/"+cc.Name, func(t *testing.T) {
				t.Parallel()
				c := compiler{machine: amd64, cc: cc}
				c.need(t)
				tools.Need(t, "readelf")
				o := tc.object(t, c)
				checkExtended(t, o, tc.before)
				converted := convert(t, o)
				checkExtended(t, converted, true)
				sameFile(t, convert(t, converted), converted)
				linkMany(t, o, converted)
			})
		}
	}
}

// checkExtended looks for a table of extended section indexes, and for faults.
func checkExtended(t *testing.T, object string, want bool) {
	t.Helper()
	out := expect.Value(exec.Command("readelf", "-hSsrW", object).CombinedOutput())(t, "readelf %s", object)
	expect.Equal(t, want, strings.Contains(string(out), ".symtab_shndx"), "%s has a .symtab_shndx", filepath.Base(object))
	for line := range strings.Lines(string(out)) {
		if findsFault(line) {
			t.Errorf("readelf says %q", line)
		}
	}
}

func linkMany(t *testing.T, before, after string) {
	c := compiler{machine: amd64, cc: toolchains.GCC}
	stub, probe := c.object(t, "many.c", "-DSTUB"), c.object(t, "many.c")
	for _, ld := range product.Some(t.Name(), amd64.linkers, 1) {
		t.Run(ld.Name, func(t *testing.T) {
			tools.Need(t, ld.Path)
			twin, err := link(amd64, ld, "many", []string{"-pie"}, before, stub)
			unconverted(t, err)
			got := expect.Value(link(amd64, ld, "many", []string{"-pie"}, after, probe))(t)
			checkImage(t, amd64, pairs, got, twinSites(t, amd64, openImage(t, twin)))
			tools.Must(t, got)
		})
	}
}

package archives

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// parts are the files that archives are made of: the path of each, and what it defines.
// Files with the same base name differ.
var parts = []string{
	"a.o", "sub/a.o", "a name with blanks.o", "fifteen_chars.o", "sixteen_chars_.o",
	"sub/a_name_that_no_header_has_room_for.o", "sub dir/odd(1).o", "größe.o", "x", "../b.o", "sub/../c.o", "notes.txt",
}

// definitions is how many functions the parts define, each several of them. That all are
// weak lets every choice of parts link.
const definitions = 6

// partSource returns the source of a part: each function that it defines says which part
// it is of, and has a probe. Every third part has none.
func partSource(part int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "void __dtrace_probe_shop___p%d(int);\nint __dtrace_isenabled_shop___p%[1]d(void);\n", part)
	for _, d := range []int{part % definitions, (part*5 + 1) % definitions} {
		fire := ""
		if part%3 != 2 {
			fire = fmt.Sprintf("if (__dtrace_isenabled_shop___p%d()) return 0; __dtrace_probe_shop___p%[1]d(%d);", part, d)
		}
		fmt.Fprintf(&b, "__attribute__((weak)) int f%d(void) { %s return %d; }\n", d, fire, 'A'+part)
	}
	return b.String()
}

// mainSource prints which part each function is of. It needs no C library.
func mainSource() string {
	var b strings.Builder
	for i := range definitions {
		fmt.Fprintf(&b, "int f%d(void);\n", i)
	}
	b.WriteString("void _start(void)\n{\n\tchar s[] = { ")
	for i := range definitions {
		fmt.Fprintf(&b, "f%d(), ", i)
	}
	b.WriteString(`'\n' };
	long n;
	__asm__ volatile("syscall" : "=a"(n) : "0"(1L), "D"(1L), "S"(s), "d"(sizeof s) : "rcx", "r11", "memory");
	__asm__ volatile("syscall" : : "a"(231L), "D"(0L));
	__builtin_unreachable();
}
`)
	return b.String()
}

// shelf is a directory with all that sequences start from: every part as it was compiled in
// plain, and converted in converted; main.o, fallback.o, which defines every function, and
// probes.o, which defines what converted and unconverted parts need.
type shelf struct{ directory string }

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{t.TempDir()}
	gcc := toolchains.AMD64.Tool("gcc")
	compile := func(source, object string) {
		text := filepath.Join(s.directory, "source.c")
		disk.Write(t, text, source)
		tools.Must(t, gcc, "-O1", "-fno-pic", "-fno-stack-protector", "-ffunction-sections", "-c", "-o", object, text)
	}
	var all []string
	for i, name := range parts {
		path := filepath.Join(s.directory, "plain", "work", name)
		expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
		if name == "notes.txt" {
			disk.Write(t, path, "no object\n")
			continue
		}
		compile(partSource(i), path)
		all = append(all, path)
	}
	tools.Must(t, "cp", "-r", s.path("plain"), s.path("converted"))
	probes := []string{"stubs", "-o", s.path("probes.o")}
	for _, path := range all {
		other := strings.Replace(path, s.path("plain"), s.path("converted"), 1)
		run(t, s.directory, other)
		probes = append(probes, path, other)
	}
	run(t, s.directory, probes...)
	compile(mainSource(), s.path("main.o"))
	fallback := ""
	for i := range definitions {
		fallback += fmt.Sprintf("__attribute__((weak)) int f%d(void) { return '-'; }\n", i)
	}
	compile(fallback, s.path("fallback.o"))
	tools.Must(t, "ar", "qcs", s.path("fallback.a"), s.path("fallback.o"))
	return s
}

func (s *shelf) path(name string) string { return filepath.Join(s.directory, name) }

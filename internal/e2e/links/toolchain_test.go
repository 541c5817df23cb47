package links

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// machine is what programs are built for and run on.
type machine struct {
	name     string
	prefix   string   // of the cross tools
	target   string   // clang's, "" for the native one
	emulator []string // that runs a program
	linkers  []linker
	exact    bool // linking does not change the size of code
}

// linker is a program that links: with -r it runs alone, else through a driver
// that finds it under the name ld in a folder.
type linker struct {
	name string
	path string
}

var amd64 = &machine{
	name:  "amd64",
	exact: true,
	linkers: []linker{
		{"bfd", "ld.bfd"}, {"gold", "ld.gold"}, {"lld14", "ld.lld-14"}, {"lld19", "ld.lld-19"}, {"mold", "mold"},
	},
}

var arm64 = &machine{
	name:     "arm64",
	prefix:   "aarch64-linux-gnu-",
	target:   "--target=aarch64-linux-gnu",
	emulator: []string{"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"},
	exact:    true,
	linkers: []linker{
		{"bfd", "aarch64-linux-gnu-ld.bfd"}, {"gold", "aarch64-linux-gnu-ld.gold"}, {"lld19", "ld.lld-19"}, {"mold", "mold"},
	},
}

// riscv64's linkers relax: they shorten calls, so nothing stays where it was.
var riscv64 = &machine{
	name:     "riscv64",
	prefix:   "riscv64-linux-gnu-",
	target:   "--target=riscv64-linux-gnu",
	emulator: []string{"qemu-riscv64-static", "-L", "/usr/riscv64-linux-gnu"},
	linkers: []linker{
		{"bfd", "riscv64-linux-gnu-ld.bfd"}, {"lld19", "ld.lld-19"}, {"mold", "mold"},
	},
}

func (m *machine) gcc() string     { return m.prefix + "gcc" }
func (m *machine) gxx() string     { return m.prefix + "g++" }
func (m *machine) objdump() string { return m.prefix + "objdump" }

// need is need for the tools that every test of a machine takes.
func (m *machine) need(t *testing.T) {
	t.Helper()
	tools.Need(t, m.gcc(), m.gxx(), m.objdump(), "nm", "addr2line")
	if m.emulator != nil {
		tools.Need(t, m.emulator[0])
	}
}

// driver is the folder in which a compiler driver finds the linker as ld.
func (l linker) driver() (string, error) {
	ld, err := sharedErr("ld", []string{"driver", l.name, l.path}, func(out string) error {
		path, err := tool(l.path)
		if err != nil {
			return err
		}
		return os.Symlink(path, out)
	})
	return filepath.Dir(ld) + "/", err
}

// compiler is a C and a C++ compiler with flags for both.
type compiler struct {
	machine *machine
	name    string
	flags   []string
	calls   []string // more of them, for calls.c alone
}

func (c compiler) String() string {
	words := append([]string{c.machine.name, c.name}, c.flags...)
	return strings.Join(append(words, c.calls...), " ")
}

// with is the compiler with more flags.
func (c compiler) with(flags ...string) compiler {
	c.flags = append(append([]string{}, c.flags...), flags...)
	return c
}

func (c compiler) need(t *testing.T) {
	t.Helper()
	c.machine.need(t)
	tools.Need(t, c.command(false)[0], c.command(true)[0])
}

// command is the compiler's program and the flags that choose its target.
func (c compiler) command(cxx bool) []string {
	driver, suffix := c.name, ""
	if name, version, ok := strings.Cut(c.name, "-"); ok {
		driver, suffix = name, "-"+version
	}
	if cxx {
		driver = map[string]string{"gcc": "g++", "clang": "clang++"}[driver]
	}
	if !strings.HasPrefix(c.name, "clang") {
		return []string{c.machine.prefix + driver + suffix}
	}
	if c.machine.target != "" {
		return []string{driver + suffix, c.machine.target}
	}
	return []string{driver + suffix}
}

// object compiles a source of testdata/objs or of this package's testdata.
func (c compiler) object(t *testing.T, source string, flags ...string) string {
	t.Helper()
	path := filepath.Join(sources, source)
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join("testdata", source)
	}
	return c.compile(t, path, flags...)
}

// compile compiles any source.
func (c compiler) compile(t *testing.T, path string, flags ...string) string {
	t.Helper()
	args := append(c.command(filepath.Ext(path) == ".cc"), c.flags...)
	args = append(append(args, flags...), "-c", path, "-o")
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) + ".o"
	return shared(t, base, args, func(out string) error {
		_, err := tools.Try(args[0], append(args[1:len(args):len(args)], out)...)
		return err
	})
}

// convert converts a copy of an object.
func convert(t *testing.T, object string, flags ...string) string {
	t.Helper()
	return shared(t, filepath.Base(object), append([]string{"convert", object}, flags...), func(out string) error {
		_, err := tools.Try(converter, append(flags[:len(flags):len(flags)], "-o", out, object)...)
		return err
	})
}

func convertAll(t *testing.T, objects []string, flags ...string) []string {
	t.Helper()
	var converted []string
	for _, o := range objects {
		converted = append(converted, convert(t, o, flags...))
	}
	return converted
}

package toolchains_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// known returns the machines of package machines, by the names of their traits.
func known() map[string]arch.Machine {
	all := map[string]arch.Machine{}
	for _, m := range machines.All() {
		all[m.Traits().Name] = m
	}
	return all
}

// Each machine that objects are converted for has a line in the table, and each line
// is of such a machine and says of it what its traits do.
func TestTableHasTheMachinesOfArch(t *testing.T) {
	left := known()
	for _, m := range toolchains.All() {
		a := left[m.Name]
		if a == nil {
			t.Errorf("%s is not a machine in arch/machines, or stands twice in the table", m.Name)
			continue
		}
		delete(left, m.Name)
		expect.Equal(t, a.Traits().Relaxes, m.Relaxes, "%s: Relaxes", m.Name)
		expect.Equal(t, m.QEMU == "", m.Native(), "%s: the emulator is %q", m.Name, m.QEMU)
	}
	for name := range left {
		t.Errorf("%s is in arch/machines, and has no line in the table of toolchains", name)
	}
}

// Compilers make objects of the machine that the table has them for, linkers that
// know it merge them, and others do not.
func TestTableIsTrueOfTheTools(t *testing.T) {
	tools.Long(t)
	source := filepath.Join(t.TempDir(), "a.c")
	disk.Write(t, source, "int a;\n")
	for _, m := range toolchains.All() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			m.Need(t)
			var object string
			for _, c := range toolchains.Compilers {
				if !m.Has(c) {
					checkLacks(t, m, c, source)
					continue
				}
				for _, command := range [][]string{m.CC(c), m.CXX(c)} {
					object = filepath.Join(t.TempDir(), "a.o")
					tools.Need(t, command[0])
					tools.Must(t, command[0], append(command[1:], "-c", "-o", object, source)...)
					checkMachine(t, m, object)
				}
			}
			for _, l := range toolchains.AMD64.Linkers() {
				i := slices.IndexFunc(m.Linkers(), func(own toolchains.Linker) bool { return own.Name == l.Name })
				if i >= 0 {
					l = m.Linkers()[i]
				}
				tools.Need(t, l.Path)
				merged := filepath.Join(t.TempDir(), "merged.o")
				command := []string{"-m", m.Emulation, "-r", "-o", merged, object}
				// Not each object of a compiler tells the version of its ABI; the C library's do.
				if library := filepath.Join(m.Sysroot(), "lib", "crt1.o"); exists(library) {
					command = append(command, library)
				}
				out, err := tools.Try(l.Path, command...)
				if known := i >= 0; known != (err == nil) {
					t.Errorf("%s knows %s: %v, and says %s, %v", l.Path, m.Name, known, out, err)
				} else if known {
					checkMachine(t, m, merged)
					checkDistances(t, m, l)
				}
			}
		})
	}
}

// checkLacks fails where a compiler makes objects that the table says it does not make.
func checkLacks(t *testing.T, m *toolchains.Machine, c toolchains.Compiler, source string) {
	t.Helper()
	command := m.CC(c)
	if !c.Clang {
		if path, err := exec.LookPath(command[0]); err == nil {
			t.Errorf("%s is installed: %s", command[0], path)
		}
		return
	}
	tools.Need(t, command[0])
	if _, err := tools.Try(command[0], append(command[1:], "-c", "-o", filepath.Join(t.TempDir(), "a.o"), source)...); err == nil {
		t.Errorf("%s makes objects of %s", command[0], m.Name)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func checkMachine(t *testing.T, m *toolchains.Machine, object string) {
	t.Helper()
	o := tools.OpenELF(t, object)
	if got := machines.Lookup(o.ABI()); got == nil || got.Traits().Name != m.Name {
		t.Errorf("%s is of %v, want %s", object, o.Machine, m.Name)
	}
}

// checkDistances links what has a distance of 4 bytes in data, and what says how long it is.
func checkDistances(t *testing.T, m *toolchains.Machine, l toolchains.Linker) {
	t.Helper()
	directory := t.TempDir()
	source, object := filepath.Join(directory, "a.c"), filepath.Join(directory, "a.o")
	text := "int here[] = { 1 };\n__asm__(\".section apart,\\\"aw\\\"\\n.balign 4\\n1:\\t.4byte here-1b\\n\");\n"
	disk.Write(t, source, text)
	cc := m.CC(m.Compilers()[0])
	tools.Must(t, cc[0], append(cc[1:], "-c", "-fvisibility=hidden", "-o", object, source)...)
	out, err := tools.Try(l.Path, "-m", m.Emulation, "-shared", "-o", filepath.Join(directory, "a.so"), object)
	expect.Equal(t, err == nil, l.Can(toolchains.Distances), "%s links distances for %s: %v (%q), %s", l.Name, m.Name, err, l.Cannot[toolchains.Distances], out)
}

// Features that the table denies linkers they have not: what is tested without them
// could be tested with them otherwise.
func TestLinkersHaveNotWhatTheyAreSaidNotToHave(t *testing.T) {
	directory := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(directory, name)
		disk.Write(t, path, text)
		return path
	}
	source, script := write("a.c", "int main(void) { return 0; }\n"), write("a.lds", "SECTIONS { .text : { *(.text) } }\n")
	tools.Need(t, "gcc")
	plain, late := filepath.Join(directory, "plain.o"), filepath.Join(directory, "late.o")
	tools.Must(t, "gcc", "-c", "-o", plain, source)
	tools.Must(t, "gcc", "-flto", "-c", "-o", late, source)
	for _, l := range toolchains.AMD64.Linkers() {
		tools.Need(t, l.Path)
		driver := "-B" + tools.Driver(t, l.Path)
		for feature, command := range map[toolchains.Feature][]string{
			toolchains.StaticPIE:       {"gcc", driver, "-static-pie", plain},
			toolchains.Scripts:         {l.Path, "-r", "-T", script, plain},
			toolchains.CrossReferences: {"gcc", driver, "-Wl,--cref", plain},
			toolchains.GCCPlugin:       {"gcc", driver, "-flto", late},
		} {
			out := filepath.Join(directory, "out")
			said, err := tools.Try(command[0], append(command[1:], "-o", out)...)
			expect.Equal(t, err == nil, l.Can(feature), "%s: %q (%q): %v, %s", l.Name, command, l.Cannot[feature], err, said)
		}
	}
}

// packages returns those that scripts/install-tools installs in the suite.
func packages(t *testing.T) []string {
	t.Helper()
	return tools.Lines(t, tools.Root("scripts", "install-tools"), "--list")
}

// named returns the tools of the table with their packages.
func named() map[string]string {
	all := map[string]string{}
	for _, m := range toolchains.All() {
		for _, c := range m.Compilers() {
			cc, cxx := m.Packages(c)
			all[m.CC(c)[0]], all[m.CXX(c)[0]] = cc, cxx
		}
		for _, l := range m.Linkers() {
			all[l.Path] = l.Package
		}
		if m.QEMU != "" {
			all[m.QEMU] = toolchains.Debian.QEMU
		}
	}
	return all
}

// scripts/install-tools installs each tool of the table.
func TestToolsAreInstalled(t *testing.T) {
	tools.Need(t, "bash", "awk")
	installed := packages(t)
	for tool, pkg := range named() {
		if !slices.Contains(installed, pkg) {
			t.Errorf("%s: scripts/install-tools does not install %s", tool, pkg)
		}
	}
}

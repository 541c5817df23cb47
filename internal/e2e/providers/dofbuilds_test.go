package providers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// freebsd compiles the sources for FreeBSD on amd64.
func freebsd(t *testing.T, directory string) (target *dofTarget, objects, want []string) {
	t.Helper()
	target = dofTargets()["freebsd-amd64"]
	cc, cxx := toolchains.Clang.Name, toolchains.Clang.CXX
	tools.Need(t, cc, cxx, toolchains.AMD64.Linker("lld").Path)
	objects = dofObjects(t, directory, []string{cc, "--target=" + target.triplet}, []string{cxx, "--target=" + target.triplet, "-fno-exceptions"}, target.triplet)
	return target, objects, dofCalls(t, target, objects)
}

// A library that is made before -G is converted as it is, and a linker finds in its index
// what the object of -G needs.
func TestDOFOfArchives(t *testing.T) {
	tools.Need(t, "ar")
	directory := t.TempDir()
	target, objects, want := freebsd(t, directory)
	library, provider, out := filepath.Join(directory, "libshop.a"), filepath.Join(directory, "provider.o"), filepath.Join(directory, "out")
	tools.Must(t, "ar", slices.Concat([]string{"rcs", library}, objects)...)
	args := []string{"provider", "-q", "-G", "-s", source(t, "dof/shop.d"), "-o", provider, library}
	tools.Must(t, converter, args...)
	before := bytesOf(t, library)
	tools.Must(t, converter, args...)
	if diff := cmp.Diff(before, bytesOf(t, library)); diff != "" {
		t.Error("the second -G changes the library")
	}
	tools.Must(t, toolchains.AMD64.Linker("lld").Path, "-pie", "-e", "work", "-u", "__SUNW_dof", "-o", out, provider, library)
	checkImage(t, out, target, want)
}

// An object that was not given to -G still calls stubs, and no linker takes that for done.
func TestDOFOfSomeObjects(t *testing.T) {
	directory := t.TempDir()
	target, objects, _ := freebsd(t, directory)
	provider, out := filepath.Join(directory, "provider.o"), filepath.Join(directory, "out")
	tools.Must(t, converter, "provider", "-q", "-G", "-s", source(t, "dof/shop.d"), "-o", provider, objects[0])
	for _, l := range target.linkers {
		tools.Need(t, l.Path)
		text, err := tools.Try(l.Path, slices.Concat([]string{"-e", "work", "-o", out}, objects, []string{provider})...)
		if err == nil || !strings.Contains(text, "__dtrace_bank____paid") {
			t.Errorf("%s: %v, %s", l.Name, err, text)
		}
	}
}

// One object that cannot be converted keeps the others as they are.
func TestDOFAllOrNothing(t *testing.T) {
	directory := t.TempDir()
	_, objects, _ := freebsd(t, directory)
	source1 := write(t, directory, "address.c", "void __dtrace_shop___empty(void); void *p = (void *)__dtrace_shop___empty;\n")
	address := filepath.Join(directory, "address.o")
	tools.Must(t, toolchains.Clang.Name, "--target=x86_64-unknown-freebsd14.0", "-c", "-o", address, source1)
	all := append(slices.Clone(objects), address)
	before := bytesOf(t, all...)
	provider := filepath.Join(directory, "provider.o")
	out, err := tools.Try(converter, slices.Concat([]string{"provider", "-G", "-s", source(t, "dof/shop.d"), "-o", provider}, all)...)
	if want := `R_X86_64_64 against "__dtrace_shop___empty": got a reference from data; do not take the stub's address`; err == nil || !strings.Contains(out, want) {
		t.Errorf("%v: %s", err, out)
	}
	expect.Equal(t, before, bytesOf(t, all...))
	if _, err := os.Stat(provider); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// More sites than the format has room for keep the object as it is, too.
func TestDOFNoRoom(t *testing.T) {
	tools.Need(t, toolchains.Clang.Name)
	directory := t.TempDir()
	text := ".type f,@function\nf:\n.rept 65536\ncall __dtrace_shop___empty\n.endr\n.size f,.-f\n"
	many, provider := filepath.Join(directory, "many.o"), filepath.Join(directory, "provider.o")
	tools.Must(t, toolchains.Clang.Name, "--target=x86_64-unknown-freebsd14.0", "-c", "-o", many, write(t, directory, "many.s", text))
	before := bytesOf(t, many)
	out, err := tools.Try(converter, "provider", "-G", "-s", source(t, "dof/shop.d"), "-o", provider, many)
	if want := "probe empty has 65536 sites and 0 tests in function f, and there is room for 65535 each"; err == nil || !strings.Contains(out, want) {
		t.Errorf("%v: %s", err, out)
	}
	if diff := cmp.Diff(before, bytesOf(t, many)); diff != "" {
		t.Error("the object has changed")
	}
	if _, err := os.Stat(provider); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// The header for Linux does not compile for these systems, where its notes would be no
// probes.
func TestHeaderOfLinuxElsewhere(t *testing.T) {
	tools.Need(t, toolchains.Clang.Name)
	directory := directoryWith(t)
	for _, triplet := range []string{"x86_64-unknown-freebsd14.0", "x86_64-pc-solaris2.11"} {
		out, err := tools.Try(toolchains.Clang.Name, "--target="+triplet, "-ffreestanding", "-fsyntax-only", "-include", filepath.Join(directory, "shop.h"), "-x", "c", "/dev/null")
		if err == nil || !strings.Contains(out, "this header has probes of Linux: make it for the system, with --target") {
			t.Errorf("%s: %v, %s", triplet, err, out)
		}
	}
}

// Where one object is compiled again, the sites of the others are still told of.
func TestDOFAfterARebuild(t *testing.T) {
	directory := t.TempDir()
	target, objects, want := freebsd(t, directory)
	provider, out := filepath.Join(directory, "provider.o"), filepath.Join(directory, "out")
	fresh := bytesOf(t, objects[0])
	args := slices.Concat([]string{"provider", "-q", "-G", "-s", source(t, "dof/shop.d"), "-o", provider}, objects)
	tools.Must(t, converter, args...)
	before := bytesOf(t, objects...)
	disk.Write(t, objects[0], fresh["shop.o"][19:])
	tools.Must(t, converter, args...)
	after := bytesOf(t, objects...)
	if before["first.o"] != after["first.o"] || before["second.o"] != after["second.o"] || before["shop.o"][19:] != after["shop.o"][19:] {
		t.Error("other objects have changed, or the same object has become another")
	}
	tools.Must(t, toolchains.AMD64.Linker("lld").Path, slices.Concat([]string{"-pie", "-e", "work", "-u", "first", "-u", "second", "-u", "__SUNW_dof", "-o", out, provider}, objects)...)
	checkImage(t, out, target, want)
}

// drti.o is that of the target's tree, which is named here or to the compiler.
func TestDrtiOfATree(t *testing.T) {
	tools.Need(t, "gcc")
	directory := t.TempDir()
	_, objects, _ := freebsd(t, directory)
	drti := filepath.Join(directory, "usr", "lib", "dtrace", "drti.o")
	expect.OK(t, os.MkdirAll(filepath.Dir(drti), 0o777))
	tools.Must(t, "gcc", "-O2", "-fPIC", "-c", "-o", drti, tools.Root("examples", "drti", "drti.c"))
	provider := filepath.Join(directory, "provider.o")
	args := slices.Concat([]string{"provider", "-G", "-s", source(t, "dof/shop.d"), "-o", provider}, objects)
	for _, c := range []struct {
		env, flags []string
		registers  bool
	}{
		{nil, nil, false},
		{nil, []string{"--sysroot", directory}, true},
		{[]string{"CC=" + toolchains.Clang.Name + " --sysroot=" + directory}, nil, true},
		{nil, []string{"--sysroot", directory, "-x", "lazyload"}, false},
	} {
		out := tools.Command{Env: c.env}.Must(t, converter, append(slices.Clone(args), c.flags...)...)
		symbols := tools.Output(t, "nm", provider)
		if strings.Contains(symbols, " t withdraw") != c.registers {
			t.Errorf("%q, %q: %s", c.env, c.flags, symbols)
		}
		warned := strings.Contains(out, "provider.o: registers no probe when a program starts: there is no /usr/lib/dtrace/drti.o; --sysroot or --drti names one")
		if lazy := slices.Contains(c.flags, "lazyload"); warned != (!c.registers && !lazy) || lazy != strings.Contains(symbols, " ___SUNW_dof\n") {
			t.Errorf("%q, %q: %s, %s", c.env, c.flags, out, symbols)
		}
	}
}

// The path of an object is not in what is made of it.
func TestDOFIsReproducible(t *testing.T) {
	var made []map[string]string
	for range 2 {
		directory := t.TempDir()
		_, objects, _ := freebsd(t, directory)
		provider := filepath.Join(directory, "provider.o")
		tools.Must(t, converter, slices.Concat([]string{"provider", "-q", "-G", "-s", source(t, "dof/shop.d"), "-o", provider}, objects)...)
		all := bytesOf(t, append(objects, provider)...)
		for name, text := range all {
			all[name] = text[19:] // without the time
		}
		made = append(made, all)
	}
	expect.Equal(t, made[0], made[1])
}

// What -G has made of arm64's code does as before, with every test false.
func TestDOFOfARM64Runs(t *testing.T) {
	m := toolchains.ARM64
	m.Need(t)
	directory := t.TempDir()
	const triplet = "aarch64-unknown-freebsd14.0"
	objects := dofObjects(t, directory, m.CC(toolchains.GCC), m.CXX(toolchains.GCC), triplet)
	provider, prog := filepath.Join(directory, "provider.o"), filepath.Join(directory, "prog")
	out := tools.Must(t, converter, slices.Concat([]string{"provider", "-G", "--target", triplet, "-s", source(t, "dof/shop.d"), "-o", provider}, objects)...)
	if want := objects[0] + ": is-enabled tests are never true: no kernel with DTrace arms them on this machine"; !strings.Contains(out, want) {
		t.Errorf("%s, want %s", out, want)
	}
	cc := m.CC(toolchains.GCC)
	tools.Must(t, cc[0], slices.Concat(cc[1:], []string{"-static", "-o", prog, source(t, "dof/main.c")}, objects, []string{provider})...)
	run := m.Command(prog)
	expect.Equal(t, "192 7 9\n", tools.Output(t, run[0], run[1:]...), "the program prints")
	target := dofTargets()["freebsd-arm64"]
	checkImage(t, prog, target, dofSitesOf(t, provider, target))
}

// dofSitesOf returns the sites in the object of -G.
func dofSitesOf(t *testing.T, object string, target *dofTarget) []string {
	t.Helper()
	file, _, _ := readDOF(t, object, target.kernel)
	return dofSites(file)
}

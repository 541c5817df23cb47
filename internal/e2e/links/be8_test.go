package links

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestArmBigEndian links big-endian code, which linkers swap (BE8), and runs it beside its
// twin. There is no C library for it. Without --be8 code stays big-endian, which the emulator
// does not run.
func TestArmBigEndian(t *testing.T) {
	lld := toolchains.LLVM("ld.lld") + " -m armelfb_linux_eabi --be8"
	bfd := arm.Tool("ld.bfd") + " -EB"
	for _, cc := range []string{arm.Tool("gcc") + " -mbig-endian", toolchains.LLVM("clang") + " --target=armv7eb-linux-gnueabihf"} {
		for _, set := range []string{"-marm", "-mthumb"} {
			t.Run(cc+set, func(t *testing.T) {
				t.Parallel()
				b := bigEndian{t, t.TempDir(), append(strings.Fields(cc), set, "-Os", "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fno-pic")}
				tools.Need(t, b.cc[0], toolchains.QEMU("armeb"), arm.Tool("ld.bfd"), toolchains.LLVM("ld.lld"))
				program := b.compile("program.o", filepath.Join("testdata", "be8.c"), "-DRECORDS")
				b.write("stubs.c", "void __dtrace_probe_a(int x) {}\nint __dtrace_isenabled_b(void) { return 0; }\n")
				twin := b.link(bfd+" --be8", b.compile("twin.o", filepath.Join("testdata", "be8.c")), b.compile("stubs.o", filepath.Join(b.directory, "stubs.c")))
				want := tools.Must(t, toolchains.QEMU("armeb"), twin)
				converted := convert(t, program)
				for _, ld := range []string{bfd + " --be8", lld, bfd} {
					b.check(b.link(ld, converted), want, strings.Contains(ld, "--be8"))
				}
			})
		}
	}
}

// bigEndian is a directory in which a compiler builds.
type bigEndian struct {
	*testing.T
	directory string
	cc        []string
}

func (b bigEndian) compile(name, source string, flags ...string) string {
	b.Helper()
	out := filepath.Join(b.directory, name)
	tools.Must(b.T, b.cc[0], append(append(b.cc[1:len(b.cc):len(b.cc)], flags...), "-c", source, "-o", out)...)
	return out
}

func (b bigEndian) write(name, text string) {
	b.Helper()
	disk.Write(b, filepath.Join(b.directory, name), text)
}

func (b bigEndian) link(ld string, objects ...string) string {
	b.Helper()
	out := filepath.Join(b.directory, strconv.Itoa(len(ld))+"-"+filepath.Base(objects[0])+".elf")
	words := append(strings.Fields(ld), append(objects, "-o", out)...)
	tools.Must(b.T, words[0], words[1:]...)
	return out
}

// check compares what a program prints with its twin's, and its records with what is listed.
func (b bigEndian) check(image, want string, runs bool) {
	b.Helper()
	var records, kinds []string
	for _, l := range list(b.T, image) {
		expect.Equal(b, "disabled", l.State, "%s: %+v", image, l)
		probe := "a"
		if strings.HasPrefix(l.Kind, "isenabled") {
			probe = "b"
		}
		records, kinds = append(records, fmt.Sprintf("%08s %s", strings.TrimPrefix(l.Address, "0x"), probe)), append(kinds, l.Kind)
	}
	expect.Equal(b, 4, len(records), "%s: sites %q of kinds %q", image, records, kinds)
	tools.Must(b.T, converter, "check", image)
	if !runs {
		return
	}
	got, ok := strings.CutPrefix(tools.Must(b.T, toolchains.QEMU("armeb"), image), want)
	if !ok {
		b.Errorf("%s prints %q, and its twin %q", image, got, want)
	}
	for _, r := range records {
		if !strings.Contains(got, r+"\n") {
			b.Errorf("%s: no record of %s in %q", image, r, got)
		}
	}
	expect.Equal(b, len(records), strings.Count(got, "\n"), "%s", image)
}

package check_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

func TestCleanImages(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.write("extra.c", `
#include "sdt.h"
SDT_PROVIDER_DEFINE(extra);
SDT_PROBE_DEFINE1(extra, mod, func, more, "long");
void extra(long n) { SDT_PROBE1(extra, mod, func, more, n); }
`)
		b.compile("extra.o", "extra.c")
		b.convert("extra.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			all := []string{"fire.o", "define.o"}
			for _, mode := range []string{"-pie", "-no-pie", "-static", "-shared"} {
				b.link(l, "prog", append(all, mode)...)
				b.clean("prog")
				b.clean("--require", "app:prog:main:start", "prog")
			}
			b.link(l, "all.o", append(all, "-r", "-nostdlib")...)
			b.clean("all.o")
			b.clean("all.o", "extra.o")
			b.run(b.machine.Tool("strip"), "-g", "prog")
			b.clean("prog")
		})
	})
}

func TestCleanLayouts(t *testing.T) {
	eachToolchain(t, func(b *build) {
		for _, flags := range [][]string{{"--layout=relative"}, {"--layout=freebsd"}, {"--section=mine"}, {"--stapsdt"}, {"--drop-relocations"}} {
			b.compiled()
			b.convert(append(flags, "fire.o", "define.o")...)
			section := "--section="
			if flags[0] == "--section=mine" {
				section += "mine"
			}
			b.clean(section, "fire.o", "define.o")
			b.eachLinker(func(b *build, l toolchains.Linker) {
				if why := l.Cannot[toolchains.Distances]; why != "" && flags[0] == "--layout=relative" {
					b.Skip(why)
				}
				b.link(l, "prog", "fire.o", "define.o", "-pie")
				b.clean(section, b.names(section, "prog"), "prog")
				if flags[0] == "--stapsdt" {
					b.lostNotes()
				}
			})
		}
	})
}

// An object that was not converted, in a program with stubs that do nothing.
func TestLiveCallInImages(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.compile("define.o", "define.c")
		b.convert("stubs", "-o", "stubs.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, mode := range []string{"-pie", "-no-pie", "-shared"} {
				b.link(l, "prog", "fire.o", "define.o", "stubs.o", mode)
				found := b.finds([]string{"live-call prog stop app___stop"}, "prog")
				if len(found) == 1 && (!strings.HasSuffix(found[0].Source, "/define.c") || found[0].Line != 10) {
					b.Errorf("%+v", found)
				}
				b.clean("--allow=live-call", "prog")
			}
		})
	})
}

// A stub that is not hidden, and is called through the procedure linkage table.
func TestImportedStub(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("default.c", `
#ifdef __cplusplus
extern "C"
#endif
void __dtrace_probe_app___imported(void);
#ifdef __cplusplus
extern "C"
#endif
int import(void) { __dtrace_probe_app___imported(); return 1; }
`)
		b.compile("default.o", "default.c")
		b.compile("got.o", "default.c", "-fno-plt")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "lib.so", "default.o", "-shared")
			for _, flags := range []string{"-Wl,-z,lazy", "-Wl,-z,now", "-Wl,-z,ibtplt", "-Wl,-z,pac-plt"} {
				in := tools.Command{Directory: b.directory}
				if _, err := in.Try(b.machine.Tool("gcc"), "-B"+tools.Driver(b.T, l.Path), "-shared", "-Werror", flags, "-o", "lib.so", "default.o"); err != nil {
					continue // an option of another linker, or of another machine
				}
				found := b.finds([]string{"live-call lib.so import app___imported"}, "lib.so")
				if len(found) == 1 && found[0].Line == 0 {
					b.Errorf("%s: %+v", flags, found)
				}
			}
			if b.machine == toolchains.PPC64 || b.machine == toolchains.PPC64LE {
				return // whose instructions that load an address and call there are apart
			}
			b.link(l, "lib.so", "got.o", "-shared")
			b.finds([]string{"live-call lib.so import app___imported"}, "lib.so")
		})
	})
}

func TestStubAddressInImages(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.write("address.c", storedAddress)
		b.compile("address.o", "address.c")
		b.convert("stubs", "-o", "stubs.o", "address.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, mode := range []string{"-pie", "-no-pie", "-shared"} {
				b.link(l, "prog", "fire.o", "define.o", "address.o", "stubs.o", mode)
				b.finds([]string{"stub-address prog  app___address"}, "--allow=unused-probe", "prog")
			}
		})
	})
}

// instructions are some of a machine.
type instructions struct {
	branch     string // a call, up to its target
	ret        string // a return
	trap, call []byte
}

var codes = map[*toolchains.Machine]instructions{
	toolchains.AMD64:   {"call", "ret", []byte{0x0f, 0x0b}, []byte{0xe8, 0, 0, 0, 0}},
	toolchains.ARM:     {"bl", "bx lr", []byte{0, 0, 0, 0}, []byte{0, 0xf0, 0, 0xf8}}, // bl of Thumb,
	toolchains.ARM64:   {"bl", "ret", []byte{0, 0, 0, 0}, []byte{1, 0, 0, 0x94}},
	toolchains.I386:    {"call", "ret", []byte{0x0f, 0x0b}, []byte{0xe8, 0, 0, 0, 0}},
	toolchains.LOONG64: {"bl", "ret", []byte{0, 0, 0, 0}, []byte{0, 0, 0, 0x54}},
	toolchains.PPC64:   {"bl", "blr", []byte{0, 0, 0, 0}, []byte{0x48, 0, 0, 1}},
	toolchains.PPC64LE: {"bl", "blr", []byte{0, 0, 0, 0}, []byte{1, 0, 0, 0x48}},
	toolchains.RISCV64: {"call", "ret", []byte{0, 0, 0, 0}, []byte{0x97, 0, 0, 0, 0xe7, 0x80, 0, 0}},
	toolchains.S390X:   {"brasl %r14,", "br %r14", []byte{0, 0, 0, 0}, []byte{0xc0, 0xe5, 0, 0, 0, 0}},
}

func (b *build) code() instructions {
	b.Helper()
	code, ok := codes[b.machine]
	if !ok {
		b.Fatalf("no instructions of %s", b.machine.Name)
	}
	return code
}

// Code without a symbol that holds it, and without unwind tables.
func TestUnanchoredSite(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.write("bare.s", "\t.text\n\t.zero 64\n\t"+b.code().branch+" __dtrace_probe_app___start\n\t"+b.code().ret+"\n")
		b.run(b.machine.Tool("as"), "-o", "bare.o", "bare.s")
		b.convert("bare.o")
		b.finds([]string{"unanchored-site bare.o  app___start"}, "fire.o", "define.o", "bare.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "bare.o", "define.o")
			b.finds([]string{"unanchored-site prog  app___start"}, "prog")
		})
	})
}

// A table of functions that says something else than the symbols, and one of a version that is not known.
func TestTablesOfFunctions(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled()
		b.convert("--functions", "fire.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o")
			b.finds([]string{}, "prog")
			f := disk.OpenELF(b, b.path("prog"))
			table := f.Section(".sdt_functions")
			data := expect.Value(table.Data())(b)
			name := bytes.Index(data, []byte("\x00stop\x00")) + 1
			if name == 0 {
				name = bytes.Index(data, []byte("stop\x00")) // behind a distance that does not end with zero
			}
			start := name - 4 // the lowest byte of the distance
			if f.ByteOrder == binary.ByteOrder(binary.BigEndian) {
				start = name - 1
			} else if b.machine == toolchains.PPC64LE {
				start = name - 8
			}
			b.overwrite("prog", fmt.Sprint(table.Addr+uint64(start)), []byte{data[start] - 4})
			b.finds([]string{"wrong-function prog stop app___stop"}, "prog")
			b.overwrite("prog", fmt.Sprint(table.Addr+uint64(bytes.Index(data, []byte("sdtf\x01\x01")))+4), []byte{2})
			b.message(b.check("--allow=wrong-function", "prog").Findings, "a table of functions of version 2, and this program reads version 1")
		})
	})
}

// overwrite changes bytes of an image at an address.
func (b *build) overwrite(name, address string, code []byte) {
	b.Helper()
	at, err := strconv.ParseUint(address, 0, 64)
	expect.OK(b, err)
	f := disk.OpenELF(b, b.path(name))
	data := disk.Read(b, b.path(name))
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && at >= p.Vaddr && at < p.Vaddr+p.Filesz {
			copy(data[at-p.Vaddr+p.Off:], code)
		}
	}
	b.write(name, string(data))
}

// A site that something else has written over: here with traps, and with calls.
func TestChangedSite(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o")
			site := b.siteOf("prog", "app:::stop")
			b.overwrite("prog", site, b.code().trap)
			b.finds([]string{"unknown-site prog stop app___stop"}, "prog")
			b.overwrite("prog", site, b.code().call)
			b.finds([]string{"live-call prog stop app___stop"}, "prog")
		})
	})
}

// siteOf returns the address of the first site of a probe, as list prints it.
func (b *build) siteOf(name, probe string) string {
	b.Helper()
	cmd := b.output(converter, "list", "-v", name, probe)
	for _, line := range strings.Split(cmd, "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "site" {
			return f[1]
		}
	}
	b.Fatalf("no site: %s", cmd)
	return ""
}

// Records whose relocations a tool has removed.
func TestDanglingRecord(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.relasdt_instances_set", "--remove-section=.relsdt_instances_set", "define.o", "broken.o")
		b.finds([]string{"dangling-record broken.o  ", "unused-probe broken.o  app___stop"}, "fire.o", "broken.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "broken.o")
			b.finds([]string{"dangling-record prog  ", "unused-probe prog  app___stop"}, "prog")
		})
	})
}

// Records that were written as assembly and by a conversion too.
func TestDuplicateRecord(t *testing.T) {
	eachToolchain(t, func(b *build) {
		if b.machine == toolchains.PPC64 {
			b.Skip("no symbol stands for code that assembly could name")
		}
		b.compiled()
		if b.machine == toolchains.ARM && b.cc == toolchains.GCC { // no other object can name sites of Thumb
			b.compile("define.o", "define.c", "-marm")
		}
		b.write("records.s", b.output(converter, "sites", "--asm", "define.o"))
		b.run(b.machine.Tool("as"), "-o", "records.o", "records.s")
		b.convert("fire.o", "define.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o", "records.o")
			b.finds([]string{"duplicate-record prog stop app___stop"}, "prog")
		})
	})
}

func TestNullProbe(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.eachLinker(func(b *build, l toolchains.Linker) {
			if b.machine == toolchains.LOONG64 && l.Family == "bfd" {
				return // it fails an assertion over the C library's own undefined weak functions
			}
			b.link(l, "prog", "fire.o", "-static", "-no-pie", "-Wl,--unresolved-symbols=ignore-all")
			for _, f := range b.check("prog").Findings {
				if f.Rule != "undefined-probe" || !strings.Contains(f.Message, "null pointer") || f.Line == 0 {
					b.Errorf("%+v", f)
				}
			}
			if len(b.check("prog").Findings) == 0 {
				b.Error("nothing found")
			}
		})
	})
}

func TestProbesOfImages(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.write("main.c", "int main(void) { return 0; }\n")
		b.compile("main.o", "main.c")
		b.convert("stubs", "-o", "stubs.o", "fire.o")
		b.write("three.c", threeArguments)
		b.compile("three.o", "three.c")
		b.convert("three.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "unused", "main.o", "define.o")
			b.finds([]string{"unused-probe unused  app___start"}, "unused")

			// The one that stubs has made lost to the real one, but is still there.
			b.link(l, "twice", "fire.o", "define.o", "stubs.o")
			rules := map[string]bool{}
			for _, f := range b.check("twice").Findings {
				rules[f.Rule] = true
			}
			if !rules["duplicate-probe"] || len(rules) > 2 || len(rules) == 2 && !rules["leftover-probe"] {
				b.Errorf("%v", rules)
			}

			b.link(l, "mismatch", "fire.o", "define.o", "three.o")
			b.finds([]string{"argument-mismatch mismatch three app___start"}, "mismatch")
		})
	})
}

func TestMixedImages(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.compile("relative.o", "define.c")
		b.convert("--layout=relative", "relative.o")
		b.run(toolchains.LLVM("llvm-objcopy"), "--set-section-flags=sdt_instances_set=alloc,readonly,data", "define.o", "flags.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			if l.Can(toolchains.Distances) {
				b.link(l, "layouts", "fire.o", "relative.o")
				b.finds([]string{"mixed-layout layouts  "}, "layouts")
			}

			// mold makes two sections of one name; other linkers merge them.
			b.link(l, "flags", "fire.o", "flags.o", "-no-pie")
			want := []string{}
			if l.Family == "mold" {
				want = append(want, "mixed-flags flags  ")
			}
			b.finds(want, "flags")
		})
	})
}

// A kernel of FreeBSD, whose linker asks for the bounds of records by name.
func TestMissingBounds(t *testing.T) {
	b := newBuild(t, combinations[0])
	b.write("kernel.c", `
#include "sdt.h"
SDT_PROVIDER_DEFINE(kernel);
SDT_PROBE_DEFINE1(kernel, , , hit, "long");
void _start(long n) { SDT_PROBE1(kernel, , , hit, n); }
`)
	b.compile("kernel.o", "kernel.c", "-fno-pic", "-DSDT_CALLS")
	b.convert("--layout=freebsd", "kernel.o")
	const start, stop = "-Wl,-u,__start_set_sdt_instances_set", "-Wl,-u,__stop_set_sdt_instances_set"
	for _, family := range []string{"bfd", "lld"} {
		l := b.machine.Linker(family)
		static := []string{"kernel.o", "-static", "-nostdlib", "-no-pie"}
		b.link(l, "kernel", static...)
		b.clean("kernel") // of no system
		b.brandFreeBSD("kernel")
		b.finds([]string{"missing-bounds kernel  "}, "kernel")
		b.run(b.machine.Tool("strip"), "kernel")
		b.clean("kernel")
		b.link(l, "kernel", append(static, start, stop)...)
		b.brandFreeBSD("kernel")
		b.clean("kernel")
		b.link(l, "all.o", "kernel.o", "-r", "-nostdlib")
		b.brandFreeBSD("all.o")
		b.clean("all.o")
	}
}

// brandFreeBSD sets the system that a file is for.
func (b *build) brandFreeBSD(name string) {
	b.Helper()
	f, err := os.OpenFile(b.path(name), os.O_WRONLY, 0)
	expect.OK(b, err)
	defer f.Close()
	expect.Value(f.WriteAt([]byte{byte(elf.ELFOSABI_FREEBSD)}, elf.EI_OSABI))(b)
}

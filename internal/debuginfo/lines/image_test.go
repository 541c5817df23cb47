package lines_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// build is one way to make a program of testdata.
type build struct {
	name     string
	machine  *toolchains.Machine
	compiler toolchains.Compiler
	cxx      bool
	flags    string
	link     string
}

// builds are those that the suite has gcc for.
var builds = slices.DeleteFunc([]build{
	{"gcc-O0", toolchains.AMD64, toolchains.GCC, false, "-O0 -gdwarf-5", ""},
	{"gcc-O2", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-5", ""},
	{"gcc-O2-4", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4", ""},
	{"gcc-O2-3", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-3 -gstrict-dwarf", "-no-pie"},
	{"gcc-O2-2", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-2 -gstrict-dwarf", ""},
	{"gcc-O2-64", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-5 -gdwarf64", ""},
	{"gcc-gc", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"gcc-gc-4", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4 -ffunction-sections", "-Wl,--gc-sections"},
	{"gcc-gc-lld", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -ffunction-sections", "-B" + toolchains.LLVMPrograms() + " -fuse-ld=lld -Wl,--gc-sections"},
	{"gcc-shared", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -fPIC", "-shared"},
	{"gcc-static", toolchains.AMD64, toolchains.GCC, false, "-O2 -g", "-static -nostdlib -Wl,-e,main"},
	{"gcc-emit-relocs", toolchains.AMD64, toolchains.GCC, false, "-O2 -g", "-Wl,-q"},
	{"gcc-lto", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -flto -ffat-lto-objects", "-O2 -g -flto"},
	{"gcc-types", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -fdebug-types-section", ""},
	{"gcc-zlib-gnu", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4 -gz=zlib-gnu", "-gz=zlib-gnu"},
	{"clang-zstd", toolchains.AMD64, toolchains.Clang, false, "-O2 -g -gz=zstd", "-fuse-ld=lld -gz=zstd"},
	{"gcc-gold-icf", toolchains.AMD64, toolchains.GCC, false, "-O2 -gdwarf-4 -ffunction-sections", "-fuse-ld=gold -Wl,--gc-sections,--icf=all"},
	{"clang-mold", toolchains.AMD64, toolchains.Clang, false, "-O2 -g -ffunction-sections", "-fuse-ld=mold -Wl,--gc-sections"},
	{"gcc-z", toolchains.AMD64, toolchains.GCC, false, "-O2 -g -gz=zlib", "-gz=zlib"},
	{"clang-64", toolchains.AMD64, toolchains.Clang, false, "-O2 -gdwarf-5 -gdwarf64", ""},
	{"clang-O0", toolchains.AMD64, toolchains.Clang, false, "-O0 -g", ""},
	{"clang-O2", toolchains.AMD64, toolchains.Clang, false, "-O2 -g", ""},
	{"clang-gc", toolchains.AMD64, toolchains.Clang, false, "-O2 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"clang-gc-4-lld", toolchains.AMD64, toolchains.Clang, false, "-O2 -gdwarf-4 -ffunction-sections", "-fuse-ld=lld -Wl,--gc-sections"},
	{"old-clang-gc-lld", toolchains.AMD64, toolchains.OldClang, false, "-O2 -gdwarf-5 -ffunction-sections", "-B" + toolchains.LLVMPrograms() + " -fuse-ld=lld -Wl,--gc-sections"},
	{"g++-O2", toolchains.AMD64, toolchains.GCC, true, "-O2 -g", ""},
	{"g++-O0-gc", toolchains.AMD64, toolchains.GCC, true, "-O0 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"clang++-O1-lld", toolchains.AMD64, toolchains.Clang, true, "-O1 -g", "-fuse-ld=lld -Wl,--gc-sections"},
	{"old-clang++-O2-4", toolchains.AMD64, toolchains.OldClang, true, "-O2 -gdwarf-4", ""},
	{"arm-gcc", toolchains.ARM, toolchains.GCC, false, "-O2 -g", ""},
	{"arm64-gcc", toolchains.ARM64, toolchains.GCC, false, "-O2 -g", ""},
	{"arm64-g++", toolchains.ARM64, toolchains.GCC, true, "-O2 -g", ""},
	{"arm64be-gcc", toolchains.ARM64, toolchains.GCC, false, "-O2 -g -mbig-endian", "-mbig-endian -nostdlib -shared"},
	{"i386-gcc", toolchains.I386, toolchains.GCC, false, "-O2 -g -fPIC", "-nostdlib -shared"},
	{"i386-gcc-4", toolchains.I386, toolchains.GCC, false, "-O2 -gdwarf-4 -fPIC", "-nostdlib -shared"},
	{"ppc64-gcc", toolchains.PPC64, toolchains.GCC, false, "-O2 -g", "-nostdlib -shared"},
	{"ppc64le-gcc", toolchains.PPC64LE, toolchains.GCC, false, "-O2 -g", ""},
	{"ppc64-gcc-3-64", toolchains.PPC64, toolchains.GCC, false, "-O2 -gdwarf-3 -gdwarf64", "-nostdlib -shared"},
	{"loong64-gcc", toolchains.LOONG64, toolchains.GCC, false, "-O2 -g", ""},
	{"loong64-gcc-norelax", toolchains.LOONG64, toolchains.GCC, false, "-O2 -g -mno-relax", ""},
	{"riscv64-gcc", toolchains.RISCV64, toolchains.GCC, false, "-O2 -g", ""},
	{"riscv64-gcc-O0", toolchains.RISCV64, toolchains.GCC, false, "-O0 -g", ""},
	{"riscv64-gcc-norelax", toolchains.RISCV64, toolchains.GCC, false, "-O2 -g -mno-relax", ""},
	{"s390x-gcc", toolchains.S390X, toolchains.GCC, false, "-O2 -g", ""},
}, func(b build) bool { return !b.machine.Has(toolchains.GCC) })

// make compiles and links, and returns the objects and the image.
func (b build) make(t *testing.T, directory string) (objects []string, image string) {
	t.Helper()
	compiler := b.machine.CC(b.compiler)[0]
	if b.cxx {
		compiler = b.machine.CXX(b.compiler)[0]
	}
	tools.Need(t, append(b.machine.Tools("objdump", "addr2line"), compiler, "eu-addr2line", "llvm-addr2line-19")...)
	sources := expect.Value(filepath.Abs("testdata"))(t)
	suffix := ".c"
	if b.cxx {
		suffix = ".cc"
	}
	for _, name := range []string{"main", "lib"} {
		object := filepath.Join(directory, name+".o")
		args := append(strings.Fields(b.flags), "-c", filepath.Join(sources, name+suffix), "-o", object)
		run(t, directory, compiler, args...)
		objects = append(objects, object)
	}
	image = filepath.Join(directory, "image")
	run(t, directory, compiler, append(append(strings.Fields(b.link), objects...), "-o", image)...)
	return objects, image
}

func TestMachinesAreCovered(t *testing.T) {
	var all []*toolchains.Machine
	for _, b := range builds {
		all = append(all, b.machine)
	}
	toolchains.Covers(t, all...)
}

// What objdump shows as code has the lines and inlined functions that at least
// one of three tools tells: they do not always agree, nor do they with DWARF.
// The objects say the same as the image.
func TestImagesAgreeWithAddr2line(t *testing.T) {
	for _, b := range product.Few(t.Name(), builds) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			objects, file := b.make(t, t.TempDir())
			image := open(t, file)
			compare(t, b, image)
			for _, object := range objects {
				o := open(t, object)
				compare(t, b, o)
				compareFunctions(t, o, image)
			}
		})
	}
}

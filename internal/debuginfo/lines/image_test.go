package lines_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// target is a machine and its tools.
type target struct{ prefix string }

var (
	amd64   = target{""}
	arm64   = target{"aarch64-linux-gnu-"}
	riscv64 = target{"riscv64-linux-gnu-"}
	i386    = target{"i686-linux-gnu-"}
	ppc64   = target{"powerpc64-linux-gnu-"}
)

// build is one way to make a program of testdata.
type build struct {
	name     string
	target   target
	compiler string
	cxx      bool
	flags    string
	link     string
}

var builds = []build{
	{"gcc-O0", amd64, "gcc", false, "-O0 -gdwarf-5", ""},
	{"gcc-O2", amd64, "gcc", false, "-O2 -gdwarf-5", ""},
	{"gcc-O2-4", amd64, "gcc", false, "-O2 -gdwarf-4", ""},
	{"gcc-O2-3", amd64, "gcc", false, "-O2 -gdwarf-3 -gstrict-dwarf", "-no-pie"},
	{"gcc-O2-2", amd64, "gcc", false, "-O2 -gdwarf-2 -gstrict-dwarf", ""},
	{"gcc-O2-64", amd64, "gcc", false, "-O2 -gdwarf-5 -gdwarf64", ""},
	{"gcc-gc", amd64, "gcc", false, "-O2 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"gcc-gc-4", amd64, "gcc", false, "-O2 -gdwarf-4 -ffunction-sections", "-Wl,--gc-sections"},
	{"gcc-gc-lld", amd64, "gcc", false, "-O2 -g -ffunction-sections", "-B/usr/lib/llvm-19/bin -fuse-ld=lld -Wl,--gc-sections"},
	{"gcc-shared", amd64, "gcc", false, "-O2 -g -fPIC", "-shared"},
	{"gcc-static", amd64, "gcc", false, "-O2 -g", "-static -nostdlib -Wl,-e,main"},
	{"gcc-emit-relocs", amd64, "gcc", false, "-O2 -g", "-Wl,-q"},
	{"gcc-lto", amd64, "gcc", false, "-O2 -g -flto -ffat-lto-objects", "-O2 -g -flto"},
	{"gcc-types", amd64, "gcc", false, "-O2 -g -fdebug-types-section", ""},
	{"gcc-zlib-gnu", amd64, "gcc", false, "-O2 -gdwarf-4 -gz=zlib-gnu", "-gz=zlib-gnu"},
	{"clang19-zstd", amd64, "clang-19", false, "-O2 -g -gz=zstd", "-fuse-ld=lld -gz=zstd"},
	{"gcc-gold-icf", amd64, "gcc", false, "-O2 -gdwarf-4 -ffunction-sections", "-fuse-ld=gold -Wl,--gc-sections,--icf=all"},
	{"clang19-mold", amd64, "clang-19", false, "-O2 -g -ffunction-sections", "-fuse-ld=mold -Wl,--gc-sections"},
	{"gcc-z", amd64, "gcc", false, "-O2 -g -gz=zlib", "-gz=zlib"},
	{"clang19-O0", amd64, "clang-19", false, "-O0 -g", ""},
	{"clang19-O2", amd64, "clang-19", false, "-O2 -g", ""},
	{"clang19-gc", amd64, "clang-19", false, "-O2 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"clang19-gc-4-lld", amd64, "clang-19", false, "-O2 -gdwarf-4 -ffunction-sections", "-fuse-ld=lld -Wl,--gc-sections"},
	{"clang14-gc-lld", amd64, "clang-14", false, "-O2 -gdwarf-5 -ffunction-sections", "-B/usr/lib/llvm-19/bin -fuse-ld=lld -Wl,--gc-sections"},
	{"g++-O2", amd64, "g++", true, "-O2 -g", ""},
	{"g++-O0-gc", amd64, "g++", true, "-O0 -g -ffunction-sections", "-Wl,--gc-sections"},
	{"clang++-O1-lld", amd64, "clang++-19", true, "-O1 -g", "-fuse-ld=lld -Wl,--gc-sections"},
	{"clang++14-O2-4", amd64, "clang++-14", true, "-O2 -gdwarf-4", ""},
	{"arm64-gcc", arm64, "gcc", false, "-O2 -g", ""},
	{"arm64-g++", arm64, "g++", true, "-O2 -g", ""},
	{"arm64be-gcc", arm64, "gcc", false, "-O2 -g -mbig-endian", "-mbig-endian -nostdlib -shared"},
	{"i386-gcc", i386, "gcc", false, "-O2 -g -fPIC", "-nostdlib -shared"},
	{"i386-gcc-4", i386, "gcc", false, "-O2 -gdwarf-4 -fPIC", "-nostdlib -shared"},
	{"ppc64-gcc", ppc64, "gcc", false, "-O2 -g", "-nostdlib -shared"},
	{"ppc64-gcc-3-64", ppc64, "gcc", false, "-O2 -gdwarf-3 -gdwarf64", "-nostdlib -shared"},
	{"riscv64-gcc", riscv64, "gcc", false, "-O2 -g", ""},
	{"riscv64-gcc-O0", riscv64, "gcc", false, "-O0 -g", ""},
	{"riscv64-gcc-norelax", riscv64, "gcc", false, "-O2 -g -mno-relax", ""},
}

// make compiles and links, and returns the objects and the image.
func (b build) make(t *testing.T, folder string) (objects []string, image string) {
	t.Helper()
	compiler := b.compiler
	if !strings.HasPrefix(compiler, "clang") {
		compiler = b.target.prefix + compiler
	}
	tools.Need(t, compiler, b.target.prefix+"objdump", b.target.prefix+"addr2line", "eu-addr2line", "llvm-addr2line-19")
	sources, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	suffix := ".c"
	if b.cxx {
		suffix = ".cc"
	}
	for _, name := range []string{"main", "lib"} {
		object := filepath.Join(folder, name+".o")
		args := append(strings.Fields(b.flags), "-c", filepath.Join(sources, name+suffix), "-o", object)
		run(t, folder, compiler, args...)
		objects = append(objects, object)
	}
	image = filepath.Join(folder, "image")
	run(t, folder, compiler, append(append(strings.Fields(b.link), objects...), "-o", image)...)
	return objects, image
}

// What objdump shows as code has the lines and inlined functions that at least
// one of three tools tells: they do not always agree, nor do they with DWARF.
// The objects say the same as the image.
func TestImagesAgreeWithAddr2line(t *testing.T) {
	for _, b := range builds {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			objects, file := b.make(t, t.TempDir())
			image := open(t, file)
			compare(t, b, image)
			for _, object := range objects {
				o := open(t, object)
				if b.target == i386 || b.target == ppc64 {
					break // their relocations are not known
				}
				compare(t, b, o)
				compareFunctions(t, b, o, image)
			}
		})
	}
}

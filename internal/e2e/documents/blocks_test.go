package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// blockWith returns the text of the block of a page that holds a text.
func blockWith(t *testing.T, name, text string) string {
	t.Helper()
	for _, b := range blocks(page(t, name)) {
		if strings.Contains(b.text, text) {
			return b.text
		}
	}
	t.Fatalf("%s has no block with %q", name, text)
	return ""
}

// calls are stubs, as a kernel or an agent has them.
const calls = `#include <sdt.h>
void _start(void)
{
	DTRACE_PROBE1(kernel___started, int, 1);
	for (;;)
		;
}
`

// blockCases are blocks that are run, or that are files which commands use. BLOCK stands for the
// block's lines, as commands without the prompt.
var blockCases = []struct {
	page, has string
	file      string // that the block is
	mode      os.FileMode
	files     map[string]string
	script    string
	tools     []string
}{
	{
		page: "docs/builds.md", has: "--linker ld --layout relative", file: "own/ld", mode: 0o777, files: map[string]string{"shop.c": shop},
		script: "gcc -O2 -Bown -o shop shop.c\nsdtconvert check --require shop:::placed shop\nreadelf -SW shop | grep -q sdt_instances_rel",
	},
	{
		page: "docs/builds.md", has: "# sdtconvert 0.1.0", file: "wrapped/gcc", mode: 0o777, files: map[string]string{"shop.c": shop},
		script: "wrapped/gcc -O2 -c shop.c\n/usr/bin/gcc -o shop shop.o\nsdtconvert check --require shop:::placed --require-notes shop",
	},
	{
		page: "docs/builds.md", has: "${0%/*}/sdtconvert", file: "toolchain/gcc", mode: 0o777, files: map[string]string{"shop.c": shop},
		script: "cp \"$(command -v sdtconvert)\" toolchain\nPATH=/usr/bin:/bin toolchain/gcc -O2 -c shop.c\n/usr/bin/gcc -o shop shop.o\nsdtconvert check --require shop:::placed --require-notes shop",
	},
	{
		page: "docs/check.md", has: "build/libstore.so", files: map[string]string{"shop.c": shop, "store.c": store, "probes.txt": "store:::put\nshop:::placed\n"},
		script: "mkdir build\ngcc -B$LINKERS -shared -fPIC -o build/libstore.so store.c\ngcc -B$LINKERS -o build/shop shop.c\nBLOCK\n" +
			"! sdtconvert check --require shop:::sent build/shop\nFIRST LIST\ntest \"$(cat probes.txt)\" = shop:shop:main:placed",
	},
	{
		page: "docs/providers.md", has: "export PATH=", files: map[string]string{"Makefile": "shop.h: shop.d\n\t$(DTRACE) -h -s shop.d\n", "shop.d": "provider shop { probe sent(int); };\n"},
		script: "BLOCK\ngrep -q SHOP_SENT shop.h\ndtrace -h -s shop.d -o again.h\ntest \"$(command -v dtrace)\" = $LINKERS/bin/dtrace",
		tools:  []string{"make"},
	},
	{
		page: "docs/reading.md", has: "sites --asm", files: map[string]string{"main.c": calls},
		script: "cc -O2 -ffreestanding -fno-pic -c main.c\nBLOCK\nsdtconvert list -v kernel | grep 'probe  unconverted'\nsdtconvert list kernel kernel:::started",
		tools:  []string{"ld"},
	},
	{
		page: "docs/vendoring.md", has: "pkg_check_modules", file: "CMakeLists.txt", files: map[string]string{"shop.c": shop},
		script: optional("cmake -S . -B BUILD\ncmake --build BUILD"), tools: []string{"cmake", "pkg-config"},
	},
	{
		page: "docs/vendoring.md", has: "required: false", file: "meson.build", files: map[string]string{"shop.c": shop},
		script: optional("meson setup BUILD\nmeson compile -C BUILD"), tools: []string{"meson", "ninja", "pkg-config"},
	},
	{
		page: "docs/vendoring.md", has: "AC_ARG_WITH", file: "configure.ac", files: map[string]string{"shop.c": shop, "Makefile.in": "CC = @CC@\nshop:\n\t$(CC) -o $@ @srcdir@/shop.c\n"},
		script: optional("test -e configure || autoconf\nmkdir BUILD\n(cd BUILD && unset CC && ../configure && make)"), tools: []string{"autoconf", "make", "pkg-config"},
	},
	{
		page: "docs/vendoring.md", has: "LDFLAGS += $(shell", file: "Makefile", files: map[string]string{"shop.c": shop},
		script: optional("rm -f shop\nmake\nmkdir BUILD\ncp shop BUILD"), tools: []string{"make", "pkg-config"},
	},
	{
		page: "docs/vendoring.md", has: "//go:build cgo", file: "probes.go", files: map[string]string{
			"go.mod": "module shop\n\ngo 1.21\n", "main.go": "package main\n\nfunc main() { probeSent(1) }\n",
			"none.go": "//go:build !cgo || !linux\n\npackage main\n\nfunc probeSent(number int) {}\n",
		},
		script: "CGO_ENABLED=1 go build -o shop .\n./shop\nCGO_ENABLED=0 go build -o without .\n./without\n" +
			"CGO_ENABLED=1 CGO_LDFLAGS=-B$LINKERS go build -ldflags='-linkmode=external -extld=gcc' -o with .\n./with\nsdtconvert check --require shop:::sent with",
		tools: []string{"go"},
	},
	{
		page: "docs/records.md", has: "990:", file: "body", files: map[string]string{"head": "\t.text\n\t.globl send\n\t.type send, @function\nsend:\n", "tail": "\tret\n\t.size send, .-send\n\t.section .note.GNU-stack,\"\",%progbits\n", "main.c": "void send(void);\nint main(void) { send(); }\n"},
		script: "cat head body tail >send.s\ncc -c send.s\ncc -o plain main.c send.o\n./plain\ngcc -B$LINKERS -o main main.c send.o\n./main\n" +
			"readelf -n main | grep -q 'Arguments: -4@%edi 8@16(%rsp) -4@$7'\nsdtconvert check --require tcp:::send --require-notes main",
	},
}

// optional runs the commands of a build, into the directory BUILD, where pkg-config finds sdtconvert and where it does not. The
// program runs in both cases.
func optional(build string) string {
	return "mkdir pc\nprintf 'Name: sdtconvert\\nDescription: links\\nVersion: 1\\nLibs: -B%s\\n' $LINKERS >pc/sdtconvert.pc\n" +
		strings.ReplaceAll(build, "BUILD", "without") + "\nwithout/shop tea\nsdtconvert check without/shop >checked && exit 1\ngrep -q not-converted checked\n" +
		"export PKG_CONFIG_PATH=$PWD/pc\n" + strings.ReplaceAll(build, "BUILD", "with") + "\nwith/shop tea\nsdtconvert check --require shop:::placed with/shop"
}

// promptOrComment is what precedes commands of a session, and lines behind them that explain.
var promptOrComment = regexp.MustCompile(`(?m)^ *[$#] | {2,}# .*$|^\./Configure .*\n`)

// firstList is the line of docs/check.md that makes a list of probes.
var firstList = regexp.MustCompile("(?m)^`(sdtconvert list --names build/shop [^`]*)` prints")

func TestBlocks(t *testing.T) {
	tools.Need(t, "cc", "gcc", "readelf")
	for _, c := range blockCases {
		t.Run(filepath.Base(c.page)+"/"+c.has, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, c.tools...)
			text := blockWith(t, c.page, c.has)
			p := newProject(t, filepath.Dir(converter), c.files)
			if c.file != "" {
				path := filepath.Join(p.directory, c.file)
				expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
				disk.Write(t, path, text)
				expect.OK(t, os.Chmod(path, c.mode|0o600))
			}
			list := ""
			if m := firstList.FindStringSubmatch(page(t, c.page)); m != nil {
				list = m[1]
			}
			p.must(strings.NewReplacer("BLOCK", promptOrComment.ReplaceAllString(text, ""), "FIRST LIST", list, "$LINKERS", linkers).Replace(c.script))
		})
	}
}

// fragments are blocks of C that are part of a source; the text has BLOCK in their place.
var fragments = []struct{ page, has, before, after string }{
	{"docs/first-steps.md", "if (SDT_PROBE_ENABLED", "#include <sdt.h>\nSDT_PROVIDER_DECLARE(count);\nSDT_PROBE_DECLARE(count, , , end__of__line);\nlong expensive(long);\nvoid f(int width, long line)\n{\n", "}\n"},
	{"docs/cost.md", "const int enabled", "#include <sdt.h>\nSDT_PROVIDER_DECLARE(shop);\nSDT_PROBE_DECLARE(shop, , , item);\nlong price(int *);\nvoid f(int i, int n, int *items)\n{\n", "}\n"},
	{"docs/probes.md", "icmp, , unreach", "", ""},
	{"docs/probes.md", "DTRACE_PROBE_GUARDED_BY", "#include <sdt.h>\nlong lookup(int);\nvoid f(int item)\n{\n", "}\n"},
	{"docs/probes.md", "DTRACE_PROBE(idle)", "#include <sdt.h>\nvoid f(int length)\n{\n", "}\n"},
}

// TestFragments compiles them, and converts the objects.
func TestFragments(t *testing.T) {
	tools.Need(t, "gcc")
	for _, c := range fragments {
		t.Run(filepath.Base(c.page)+"/"+c.has, func(t *testing.T) {
			t.Parallel()
			text := c.before + strings.ReplaceAll(blockWith(t, c.page, c.has), "...\n", "{}\n") + c.after
			p := newProject(t, filepath.Dir(converter), map[string]string{"fragment.c": text})
			p.must("gcc -std=c99 -O2 -Wall -Wextra -Werror -c fragment.c\nsdtconvert fragment.o")
		})
	}
}

// TestPackages builds and runs a program with the packages, as docs/output.md shows.
func TestPackages(t *testing.T) {
	tools.Need(t, "go", "gcc")
	const name = "docs/output.md"
	body := blockWith(t, name, "elfreloc.Open")
	module := strings.Replace(blockWith(t, name, "replace sdtconvert"), "../sdtconvert", strconv.Quote(tools.Root()), 1)
	p := newProject(t, filepath.Dir(converter), map[string]string{
		"shop.text": shop,
		"go.mod":    "module convert\n\ngo 1.26\n\n" + module,
		"main.go": `package main

import (
	"bytes"
	"os"

	"sdtconvert/elfreloc"
	"sdtconvert/patch"
)

var converted bytes.Buffer

type file struct{ *os.File }

func (f file) Size() int64 {
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	return info.Size()
}

func run(in file) error {
` + body + `}

func main() {
	f, err := os.Open("shop.o")
	if err == nil {
		err = run(file{f})
	}
	if err == nil {
		err = os.WriteFile("converted.o", converted.Bytes(), 0o666)
	}
	if err != nil {
		panic(err)
	}
}
`,
	})
	p.must("gcc -O2 -x c -c shop.text -o shop.o\ncp '" + tools.Root("go.sum") + "' .\nGOFLAGS=-mod=mod GOPROXY=off GOWORK=off go run .\nsdtconvert shop.o\ncmp shop.o converted.o")
}

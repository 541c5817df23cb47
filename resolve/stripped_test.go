package resolve_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/debugfile"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/resolve"
)

// checkStripped strips an image: with its debug file it is as it was, and without
// it every function that the compiler made is still found.
func checkStripped(t *testing.T, m *toolchains.Machine, image string) {
	t.Helper()
	functions := listFunctions(t, m, image)
	want := tableOf(t, image, nowhere)

	directory := t.TempDir()
	stripped := filepath.Join(directory, "image")
	tools.Output(t, m.Tool("strip"), "-o", stripped, image)
	debug := installByID(t, m, image, filepath.Join(directory, "root"))
	with := tableOf(t, stripped, resolve.Options{DebugRoots: []string{filepath.Join(directory, "root")}})
	if with.DebugFile() != debug {
		t.Errorf("debug file is %q, want %q", with.DebugFile(), debug)
	}
	checkGiven(t, image, stripped, debug)
	without := tableOf(t, stripped, nowhere)
	if without.DebugFile() != "" {
		t.Errorf("debug file is %q, want none", without.DebugFile())
	}
	for _, address := range places(functions) {
		f, ok := want.Lookup(0, address)
		g, same := with.Lookup(0, address)
		if f.Raw != g.Raw || f.Name != g.Name || f.Start != g.Start || f.Size != g.Size || ok != same || ok && g.From != resolve.Debug {
			t.Errorf("%#x: %+v, with a debug file %+v", address, f, g)
		}
	}
	checkUnnamed(t, functions, without, strings.HasSuffix(t.Name(), "/shared"))
}

// checkGiven has a caller give the debug file, which is asked for once and only
// where there are no symbols.
func checkGiven(t *testing.T, image, stripped, debug string) {
	t.Helper()
	for file, want := range map[string]int{image: 0, stripped: 1} {
		asked := 0
		table := tableOf(t, file, resolve.Options{Debug: func() (*elfreloc.Object, error) {
			asked++
			return tools.OpenELF(t, debug), nil
		}})
		if asked != want || (table.DebugFile() != "") != (want > 0) || (table.From() == resolve.Debug) != (want > 0) {
			t.Errorf("%s: asked %d times for the debug file, and used %q, want %d", file, asked, table.DebugFile(), want)
		}
	}
}

// compiled are functions of program.c that have unwind tables and are not
// exported from any image.
var compiled = []string{"partial.part.0", "constant.constprop.0", "removed.isra.0", "hidden"}

// exported are functions of program.c that a shared library exports.
var exported = []string{"entry", "divided", "weakly", "asm_sized", "asm_inner"}

// checkUnnamed checks what .dynsym and .eh_frame alone tell.
func checkUnnamed(t *testing.T, functions []function, without *resolve.Table, shared bool) {
	t.Helper()
	seen := 0
	for _, f := range functions {
		for _, address := range []uint64{f.start, f.start + f.size/2} {
			g, ok := without.Lookup(0, address)
			switch {
			case slices.Contains(compiled, f.name):
				seen++
				if !ok || g.Start != f.start || g.From != resolve.EhFrame || g.From.IsSymbol() || g.Name != fmt.Sprintf("sub_%x", f.start) || g.Symbol != 0 {
					t.Errorf("%s at %#x is %+v without symbols", f.name, f.start, g)
				}
			case slices.Contains(exported, f.name) && shared:
				seen++
				if !ok || g.Start != f.start || g.From != resolve.Dynsym || g.Raw != f.name {
					t.Errorf("%s at %#x is %+v by .dynsym", f.name, f.start, g)
				}
			}
		}
	}
	if seen < 2*len(compiled) {
		t.Errorf("%d addresses were compared", seen)
	}
}

// installByID puts the debug file of an image where its build id leads to.
func installByID(t *testing.T, m *toolchains.Machine, image, root string) string {
	t.Helper()
	id := buildID(t, image)
	path := filepath.Join(root, ".build-id", id[:2], id[2:]+".debug")
	disk.Must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	tools.Output(t, m.Tool("objcopy"), "--only-keep-debug", image, path)
	return path
}

func buildID(t *testing.T, image string) string {
	t.Helper()
	id, err := debugfile.BuildID(tools.OpenELF(t, image))
	if err != nil || len(id) < 8 {
		t.Fatalf("build id %x, %v", id, err)
	}
	return hex.EncodeToString(id)
}

// A static function whose symbol was stripped is not said to be in the symbol without a
// size before it, which is the start files'.
func TestFunctionsBehindStartFiles(t *testing.T) {
	const program = "__attribute__((noinline)) static int hidden(int x) { return x * 3; }\n" +
		"int main(int argc, char **argv) { return hidden(argc) + hidden(argc + 2); }\n"
	for _, m := range toolchains.Machines {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, m.Tools("gcc", "objcopy")...)
			directory := t.TempDir()
			path := func(name string) string { return filepath.Join(directory, name) }
			disk.Write(t, path("in.c"), program)
			tools.Must(t, m.Tool("gcc"), append([]string{"-O2", "-fasynchronous-unwind-tables", "-o", path("whole"), path("in.c")}, m.LinkFlags...)...)
			tools.Must(t, m.Tool("objcopy"), "--strip-symbol=hidden", path("whole"), path("image"))
			named := tableOf(t, path("whole"), nowhere).Named(func(name string) bool { return name == "hidden" })
			if len(named) != 1 {
				t.Fatal(named)
			}
			start := named[0].Start
			got, ok := tableOf(t, path("image"), nowhere).Lookup(0, start)
			if m == toolchains.ARM { // which has unwind tables of its own
				if ok && !got.Unsized {
					t.Errorf("%#x is in %+v", start, got)
				}
			} else if want := fmt.Sprintf("sub_%x", start); !ok || got.Raw != want || got.From != resolve.EhFrame {
				t.Errorf("%#x is in %+v, %v, want %s", start, got, ok, want)
			}
		})
	}
}

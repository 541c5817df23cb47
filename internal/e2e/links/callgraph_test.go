package links

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestNotLoaded links what is not loaded and named a stub: where a probe was called,
// there is no address, and the other addresses are where they were.
func TestNotLoaded(t *testing.T) {
	for _, ld := range amd64.linkers {
		names := []string{"notloaded.amd64-clang19.o"}
		if ld.Name == "lld" {
			names = append(names, "notloaded.amd64-clang19-crel.o")
		}
		for _, name := range names {
			t.Run(ld.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := compiler{machine: amd64, cc: toolchains.GCC}
				c.need(t)
				tools.Need(t, ld.Path)
				o := objects.Directory() + "/" + name
				_, err := link(amd64, ld, "twin", []string{"-pie"}, o, c.object(t, "callgraph.c", "-fPIC", "-DSTUB"))
				unconverted(t, err)
				got, err := link(amd64, ld, "converted", []string{"-pie"}, convert(t, o), c.object(t, "callgraph.c", "-fPIC"))
				expect.OK(t, err)
				tools.Must(t, got)
				checkNotLoaded(t, openImage(t, got))
			})
		}
	}
}

// checkNotLoaded compares the bytes of sections with what notloaded.amd64.S has there.
func checkNotLoaded(t *testing.T, im *image) {
	t.Helper()
	word := func(b []byte, function string) []byte {
		i := slices.IndexFunc(im.funcs, func(s elf.Symbol) bool { return s.Name == function })
		if i < 0 {
			t.Fatalf("%s: no function %s", im.path, function)
		}
		return binary.LittleEndian.AppendUint64(b, im.funcs[i].Value)
	}
	none := make([]byte, 8)
	graph := append(word([]byte{0, 2}, "f"), none...)
	graph = word(append(append(graph, 2), none...), "g")
	addresses := word(append(word(nil, "f"), none...), "g")
	for section, want := range map[string][]byte{".llvm.callgraph": graph, ".debug_addr": addresses} {
		s := im.file.Section(section)
		if s == nil {
			t.Errorf("%s: no %s", im.path, section)
			continue
		}
		expect.Equal(t, want, expect.Value(s.Data())(t), "%s: %s", im.path, section)
	}
}

// TestCallGraph links programs of a compiler that writes the call graph, and has LLVM
// read it: it is that of the twin, but for the stubs, and in their place is nothing.
func TestCallGraph(t *testing.T) {
	if toolchains.CallGraph == "" {
		return // TestNotLoaded has what the compiler would write
	}
	for _, m := range toolchains.Machines {
		c := compiler{machine: of(m), cc: toolchains.Clang, flags: []string{"-O2", "-fPIC", toolchains.CallGraph}}
		for _, ld := range c.machine.linkers {
			t.Run(c.String()+"/"+ld.Name, func(t *testing.T) {
				c.parallel(t, ld.Path, toolchains.LLVM("llvm-readobj"))
				p := compileProgram(t, c, pairs, false)
				twin, err := modePIE.link(p, ld, nil, p.twin())
				unconverted(t, err)
				got := expect.Value(modePIE.link(p, ld, nil, p.converted(t)))(t)
				got.check(t, c.machine, pairs, twin.examine(t, c.machine))
				checkCallGraph(t, callGraph(t, twin.image), callGraph(t, got.image))
			})
		}
	}
}

// checkCallGraph compares calls, which are as often in the one as in the other only
// where they are of what has a name.
func checkCallGraph(t *testing.T, twin, got []string) {
	t.Helper()
	stubs := 0
	for i, c := range twin {
		if from, _, ok := strings.Cut(c, " -> [__dtrace_"); ok {
			twin[i] = from + " -> address 0"
			stubs++
		}
	}
	if stubs < 50 || stubs == len(twin) {
		t.Errorf("the twin has %d calls, and %d of stubs", len(twin), stubs)
	}
	slices.Sort(twin)
	slices.Sort(got)
	expect.Equal(t, slices.Compact(twin), slices.Compact(got))
}

// callGraph returns what llvm-readobj reads: callers and callees, but for calls through
// pointers. A callee is shown by its name, as unnamed, or as address 0.
func callGraph(t *testing.T, path string) []string {
	t.Helper()
	var all []string
	var from, to string
	called := false
	for line := range strings.Lines(tools.Output(t, toolchains.LLVM("llvm-readobj"), "--call-graph-info", path)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Function {":
			called = false
		case "DirectCallees [":
			called = true
		case "{":
			to = ""
		case "Names":
			to = value
			if !called {
				from = value
			}
		case "Address":
			if !called {
				continue
			}
			switch {
			case to != "":
			case value == "0x0":
				to = "address 0"
			default:
				to = "unnamed" // GNU ld's stubs of shared libraries have no names
			}
			all = append(all, from+" -> "+to)
		}
	}
	return all
}

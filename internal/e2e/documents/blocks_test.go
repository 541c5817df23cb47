package documents

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// shownBlock is a fenced block of a page. One that nothing runs as it stands says why in reason.
type shownBlock struct {
	first  string // the beginning of its first line
	test   string // the test that runs it, or tests what it shows: Test, or directory/Test
	reason string
}

// shownBlocks lists all blocks of the pages, in their order.
var shownBlocks = map[string][]shownBlock{
	"README.md": {
		{"#include <unistd.h>", "TestCommands", ""},
		{"$ cc -O2 -B", "TestCommands", ""},
		{"   ID ", "", freeBSDOutput},
	},
	"docs/builds.md": {
		{"cmake_minimum_required", "TestMakefiles", ""},
		{"cmake -S", "TestMakefiles", ""},
		{"project(", "TestMakefiles", ""},
		{"option(", "TestMakefiles", ""},
		{"meson setup", "TestMakefiles", ""},
		{"SDTCONVERT =", "TestMakefiles", ""},
		{"#!/bin/sh", "TestBlocks", ""},
		{"export CCACHE_PREFIX=", "TestBuilds", ""},
		{"#!/bin/sh", "TestBlocks", ""},
		{"#!/bin/sh", "TestBlocks", ""},
	},
	"docs/check.md": {
		{"sdtconvert check", "TestBlocks", ""},
		{"# A dashboard", "internal/check/TestRecipes", ""},
		{"cmake_minimum_required", "internal/check/TestRecipes", ""},
		{"on: push", "internal/check/TestRecipes", ""},
		{"probes:", "internal/check/TestRecipes", ""},
		{"live-call queue.o", "cmd/sdtconvert/TestScripts", "a line of a file"},
	},
	"docs/cost.md":   {{"const int enabled", "TestFragments", ""}},
	"docs/design.md": {{"path", "", "a diagram"}},
	"docs/first-steps.md": {
		{"/* count.c */", "TestCommands", ""},
		{"$ cc", "TestCommands", ""},
		{"$ cc", "TestCommands", ""},
		{"count: count.o", "TestMakefiles", ""},
		{"$ sdtconvert list", "TestCommands", ""},
		{"# bpftrace", "TestCommands", ""},
		{"if (SDT_PROBE_ENABLED", "TestFragments", ""},
		{"$ sdtconvert check", "TestCommands", ""},
	},
	"docs/freebsd.md": {
		{"   ID ", "", freeBSDOutput},
		{"   ID ", "", freeBSDOutput},
		{"makeoptions	CC=", "internal/e2e/header/TestFreeBSDTree", freeBSDHost},
		{"env CC=", "internal/e2e/header/TestFreeBSDTree", freeBSDHost},
		{"makeoptions	CC=", "internal/e2e/header/TestFreeBSDTree", freeBSDHost},
		{"$ sdtconvert list kernel", "internal/e2e/header/TestFreeBSDTree", freeBSDHost},
		{"# cd examples/freebsd-provider", "internal/e2e/header/TestFreeBSDProvider", freeBSDHost},
		{"# Makefile", "internal/e2e/kernel/TestFreeBSD", ""},
		{"LD=", "internal/e2e/kernel/TestFreeBSDLinker", ""},
	},
	"docs/kernel.md": {
		{"/* parcel.c */", "internal/e2e/kernel/TestKbuild", ""},
		{"# Kbuild", "internal/e2e/kernel/TestKbuild", ""},
		{"$ cp", "internal/e2e/kernel/TestKbuild", ""},
		{"make -C", "internal/e2e/kernel/TestKbuild", ""},
	},
	"docs/languages.md": {
		{"$ sdtconvert list", "internal/e2e/languages/TestLanguages", ""},
		{"$ cat stop.gdb", "internal/e2e/languages/TestLanguages", ""},
		{"extern \"C\"", "internal/e2e/languages/TestLanguages", "lines of the program"},
		{"export RUSTFLAGS=", "internal/e2e/languages/TestLanguages", ""},
		{"package main", "internal/e2e/languages/TestLanguages", ""},
		{"module shop", "internal/e2e/languages/TestLanguages", ""},
		{"export CGO_LDFLAGS=", "internal/e2e/languages/TestLanguages", ""},
		{"subroutine", "internal/e2e/languages/TestLanguages", "lines of the program"},
		{"gfortran", "internal/e2e/languages/TestLanguages", ""},
		{"procedure", "internal/e2e/languages/TestLanguages", "lines of the program"},
		{"gnatmake", "internal/e2e/languages/TestLanguages", ""},
		{"extern (C)", "internal/e2e/languages/TestLanguages", "lines of the program"},
		{"gdc", "internal/e2e/languages/TestLanguages", ""},
		{"ldc2", "internal/e2e/languages/TestLanguages", ""},
		{"extern fn", "internal/e2e/languages/TestLanguages", "lines of the program"},
		{"zig", "internal/e2e/languages/TestLanguages", ""},
	},
	"docs/output.md": {
		{"   ID ", "cmd/sdtconvert/TestScripts", "output"},
		{"    1 ", "cmd/sdtconvert/TestScripts", "output"},
		{"{ \"version\": 1,", "cmd/sdtconvert/TestScripts", "output"},
		{"{", "cmd/sdtconvert/TestScripts", "output"},
		{"server.o:", "cmd/sdtconvert/TestScripts", "output"},
		{"{ \"version\": 1,", "cmd/sdtconvert/TestScripts", "output"},
		{"require sdtconvert", "TestPackages", ""},
		{"o, err :=", "TestPackages", ""},
	},
	"docs/probes.md": {
		{"#include <sdt.h>", "TestFragments", ""},
		{"DTRACE_PROBE1", "TestFragments", ""},
		{"if (DTRACE_PROBE_ENABLED(orders)", "TestFragments", ""},
	},
	"docs/providers.md": {
		{"provider shop", "TestMakefiles", ""},
		{"export PATH=", "TestBlocks", "the last line is of Perl, which scripts/projects builds"},
		{"shop: shop.o", "TestMakefiles", ""},
		{"#include \"shop.h\"", "TestMakefiles", ""},
		{"$ sdtconvert provider", "internal/e2e/providers/TestDOFLinks", "needs a tree of FreeBSD"},
	},
	"docs/reading.md": {
		{"/* reader.c */", "internal/e2e/header/TestDocs", ""},
		{"$ sdtconvert sites", "TestBlocks", ""},
	},
	"docs/records.md": {{"990:", "TestBlocks", ""}},
	"docs/tracers.md": {
		{"$ readelf", "TestTracers", ""},
		{"$ gdb", "TestTracers", ""},
		{"# bpftrace -l", "TestTracers", ""},
		{"# bpftrace -p", "internal/e2e/attach/TestGuardsOfAProcess", "a server of one's own, with tools that need headers of the running kernel or change the user's cache"},
		{"void __dtrace_probe_tcp___send", "TestBlocks", ""},
		{"$ cat shop.d", "internal/e2e/attach/TestDTraceLinks", "needs Oracle's dtrace and a kernel that runs it"},
	},
}

const (
	freeBSDOutput = "output of FreeBSD, which docs/results/freebsd.md describes"
	freeBSDHost   = "a host with FreeBSD's sources; SYSDIR has the test use these"
)

// TestEachBlockIsListed compares the blocks of the pages with the table, and the table with the
// tests that exist.
func TestEachBlockIsListed(t *testing.T) {
	all := expect.Value(filepath.Glob(tools.Root("docs", "*.md")))(t)
	pages := []string{"README.md"}
	for _, path := range all {
		pages = append(pages, "docs/"+filepath.Base(path))
	}
	for _, name := range pages {
		got, want := blocks(page(t, name)), shownBlocks[name]
		for i, b := range got {
			first, _, _ := strings.Cut(strings.TrimLeft(b.text, "\n"), "\n")
			if i >= len(want) || !strings.HasPrefix(strings.TrimSpace(first), strings.TrimSpace(want[i].first)) {
				t.Errorf("%s: the table lacks the block that begins with %q", name, first)
				break
			}
		}
		if len(want) > len(got) {
			t.Errorf("%s has no block %q", name, want[len(got)].first)
		}
		for _, b := range want {
			b.check(t, name)
		}
	}
	for name := range shownBlocks {
		if !slices.Contains(pages, name) {
			t.Errorf("there is no %s", name)
		}
	}
}

// check looks for the test of a block.
func (b shownBlock) check(t *testing.T, name string) {
	t.Helper()
	if b.test == "" {
		if b.reason == "" {
			t.Errorf("%s: %q has neither a test nor a reason", name, b.first)
		}
		return
	}
	directory, test := filepath.Split(b.test)
	if directory == "" {
		directory = "internal/e2e/documents"
	}
	if !slices.Contains(testsOf(t, directory), test) {
		t.Errorf("%s: %q names %s, which %s lacks", name, b.first, test, directory)
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsOf returns the names of a directory's tests.
func testsOf(t *testing.T, directory string) (names []string) {
	t.Helper()
	for _, path := range expect.Value(filepath.Glob(tools.Root(directory, "*_test.go")))(t) {
		for _, m := range testFunction.FindAllSubmatch(disk.Read(t, path), -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

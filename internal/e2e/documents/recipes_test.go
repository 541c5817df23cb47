package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// recipe is a build that a page shows in full: its files, the commands that make its program,
// and what they leave.
type recipe struct {
	name, setup, build string
	files              map[string]string
	made               []string
	tools              []string
}

// recipes reads those of docs/first-steps.md, docs/builds.md and docs/providers.md. docs/check.md
// and docs/kernel.md have others, which internal/check and internal/e2e/kernel run.
func recipes(t *testing.T) []recipe {
	t.Helper()
	first := blocks(page(t, "docs/first-steps.md"))
	count := recipe{name: "first steps", build: "make count", files: map[string]string{"count.c": first[0].text}, made: []string{"count", "count.o"}, tools: []string{"make"}}
	for _, b := range first {
		if b.language == "make" {
			count.files["Makefile"] = b.text
		}
	}
	all := []recipe{count}
	for _, c := range []struct{ heading, language, file, build, program string }{
		{"CMake", "cmake", "CMakeLists.txt", "cmake --build build", "build/shop"},
		{"Meson", "meson", "meson.build", "meson test -C build", "build/shop"},
		{"make", "make", "Makefile", "make", "shop"},
	} {
		r := recipe{name: c.heading, build: c.build, made: []string{c.program}, files: map[string]string{"orders.c": shop, "shop.c": shop, "store.c": store}}
		r.tools = []string{strings.ToLower(c.heading)}
		for _, b := range blocks(section(t, page(t, "docs/builds.md"), c.heading)) {
			switch {
			case b.file != "":
				r.files[b.file] = b.text
			case b.language == c.language:
				r.files[c.file] = b.text
			case b.language == "sh":
				r.setup, _, _ = strings.Cut(b.text, "\n")
				r.build = strings.ReplaceAll(strings.TrimSpace(b.text[len(r.setup):]), "\n", " && ")
			}
		}
		all = append(all, r)
	}
	const providers = "docs/providers.md"
	_, fires, _ := strings.Cut(blockWith(t, providers, `#include "shop.h"`), "\n\n")
	return append(all, recipe{name: "provider", build: "make", made: []string{"shop"}, tools: []string{"make"}, files: map[string]string{
		"shop.d":   blockWith(t, providers, "provider shop {"),
		"Makefile": blockWith(t, providers, "shop: shop.o provider.o"),
		"shop.c":   "#include \"shop.h\"\nstatic int cost_of(int n) { return n * 2; }\nint main(int number, char **argv)\n{\n\tchar *name = argv[0];\n" + fires + "}\n",
	}})
}

// TestMakefiles runs the recipes: with sdtconvert, and with one that fails or is missing. Then each
// build fails, again too, and leaves no program.
func TestMakefiles(t *testing.T) {
	tools.Need(t, "cc", "gcc")
	for _, r := range recipes(t) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, r.tools...)
			if len(r.files) < 2 {
				t.Fatalf("the page shows %d files", len(r.files))
			}
			p := newProject(t, filepath.Dir(converter), r.files)
			p.must("true\n" + r.setup)
			p.must(r.build)
			for _, made := range r.made {
				if strings.HasSuffix(made, ".o") {
					continue
				}
				p.must("sdtconvert check --require-notes " + made)
			}
			for name, script := range map[string]string{"fails": "#!/bin/sh\necho sdtconvert fails >&2\nexit 1\n", "is missing": ""} {
				t.Run(name, func(t *testing.T) { r.breaks(t, script) })
			}
		})
	}
}

// breaks runs a recipe twice with a script as sdtconvert and as the linkers, or without any.
func (r recipe) breaks(t *testing.T, script string) {
	t.Helper()
	bin := t.TempDir()
	if script != "" {
		for _, name := range []string{"sdtconvert", "ld"} {
			disk.Write(t, filepath.Join(bin, name), script)
			expect.OK(t, os.Chmod(filepath.Join(bin, name), 0o777))
		}
	}
	files := map[string]string{}
	for name, text := range r.files {
		files[name] = strings.ReplaceAll(text, linkers, bin)
	}
	p := newProject(t, bin, files)
	// CMake and Meson try the linker when they are set up, and may fail then.
	if out, err := p.sh("true\n" + r.setup); err != nil {
		if r.setup == "" {
			t.Fatal(out)
		}
		p.lacks(r.made...)
		return
	}
	for range 2 {
		if out, err := p.sh(r.build); err == nil {
			t.Errorf("%s succeeds:\n%s", r.build, out)
		}
		p.lacks(r.made...)
	}
}

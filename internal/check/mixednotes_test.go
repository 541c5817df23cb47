package check_test

import (
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
)

// Images of one program are converted with the same flags, or tracers find the probes of a part.
func TestImagesWithAndWithoutNotes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("only.c", "#include \"program.h\"\nSDT_PROVIDER_DEFINE(app);\nSDT_PROBE_DEFINE1(app, , , start, \"int\");\nC int fire(int n) { SDT_PROBE1(app, , , start, n); return n; }\n")
		b.compile("only.o", "only.c")
		b.convert("-o", "pairs.o", "only.o")
		b.convert("--stapsdt", "-o", "noted.o", "only.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			for _, name := range []string{"pairs", "noted"} {
				b.link(l, name+".so", "-shared", name+".o")
			}
			b.clean("pairs.so", "pairs.so")
			b.clean("noted.so")
			found := b.finds([]string{"mixed-notes noted.so  "}, "pairs.so", "noted.so")
			b.message(found, "records with notes here, records without notes in pairs.so; compile and convert it again")
			b.clean("--allow=mixed-notes", "pairs.so", "noted.so")
		})
	})
}

// No kernel reads notes. The sections of modules are those of modpost and objtool.
func TestModuleWithNotes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("module.c", "#include \"program.h\"\nSDT_PROVIDER_DEFINE(app);\nSDT_PROBE_DEFINE1(app, , , start, \"int\");\nC int fire(int n) { SDT_PROBE1(app, , , start, n); return n; }\n"+
			"__attribute__((section(\".modinfo\"), used)) static const char license[] = \"license=GPL\";\n")
		b.compile("module.o", "module.c")
		b.run(converter, "-o", "default.o", "module.o")
		b.run(converter, "--stapsdt", "-o", "noted.o", "module.o")
		b.convert("-o", "pairs.o", "module.o")
		expect.Equal(b, string(disk.Read(b, b.path("pairs.o"))), string(disk.Read(b, b.path("default.o"))), "the default of a module")
		b.clean("default.o")
		b.message(b.finds([]string{"kernel-notes noted.o  "}, "noted.o"), "convert it with --layout pairs")
	})
}

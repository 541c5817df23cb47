package check_test

import (
	"fmt"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// missing returns the findings of required probes that have no site.
func missing(probes ...string) []string {
	all := []string{}
	for _, probe := range probes {
		all = append(all, "missing-probe   "+probe)
	}
	return all
}

// The names that list prints of a program are there for --require: in the program, without debug information,
// and linked again. What was removed or lost since is a finding each.
func TestNames(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.compile("gone.o", "define.c", "-DSDT_DISABLE")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "fire.o", "define.o", "-no-pie")
			require := b.names("prog")
			want := []string{"app:prog:fire:start", "app:prog:main:start", "app:prog:stop:stop", "app:prog:unused:start"}
			expect.Equal(b, strings.Join(want, "\n")+"\n", b.output("cat", "names.txt"))
			b.clean(require, "prog")
			b.run(b.machine.Tool("strip"), "-g", "prog")
			b.clean(require, "prog")
			b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=sdt_instances_set", "prog")
			for _, f := range b.finds(missing(want[1:]...), require, "--allow=unused-probe", "prog") { // fire has a test too
				if f.Source != "names.txt" || f.Line == 0 || !strings.Contains(f.Message, "its tracepoint was removed, or its record was lost") {
					b.Errorf("%+v", f)
				}
			}
			b.link(l, "prog", "fire.o", "define.o", "-no-pie")
			b.message(b.finds(missing("app:prog:gone:start"), "--require=app:prog:gone:start", "prog"), "it is left in app:prog:")
			b.message(b.finds(missing("app:prog:gone:stop"), "--require=app:prog:gone:stop", "prog"), "it is left in app:prog:stop:stop")
			b.convert("stubs", "-o", "stubs.o", "fire.o", "gone.o")
			b.link(l, "prog", "fire.o", "gone.o", "stubs.o", "-no-pie")
			b.finds(missing("app:prog:stop:stop"), require, "prog")
		})
	})
}

// Functions may have names that patterns, lines and comments read otherwise.
func TestNamesOfOddFunctions(t *testing.T) {
	b := newBuild(t, combinations[0])
	var source strings.Builder
	source.WriteString(noteMacro + "\t.text\n")
	for i, name := range []string{"main.(*T).f", "main.f[go.shape.int]", "-[Foo bar:]", "a b", "#c", "d#e", "a\\\\\\\\b", "x/y", "caf\u00e9", "a\tb", "@f"} {
		fmt.Fprintf(&source, "\t.type \"%s\", %%function\n\"%[1]s\":\n1:\tnop\nnote odd%d\n\t.size \"%[1]s\", . - \"%[1]s\"\n", name, i)
	}
	b.write("odd.s", source.String())
	b.run("as", "--64", "-o", "odd.o", "odd.s")
	require := b.names("odd.o")
	lines := strings.Split(strings.TrimSpace(b.output("cat", "names.txt")), "\n")
	if len(lines) != 11 || !strings.Contains(strings.Join(lines, " "), "app:odd.o:main.(?T).f:odd0") {
		t.Errorf("%q", lines)
	}
	b.clean(require, "odd.o")
	b.write("plain.s", noteMacro+"\t.text\n\t.type f, %function\nf:\n1:\tnop\nnote odd\n\t.size f, . - f\n")
	b.run("as", "--64", "-o", "odd.o", "plain.s")
	b.finds(missing(lines...), require, "odd.o")
}

// The names of probes that have notes alone, of programs that are stripped in every way.
func TestNamesOfNotes(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.sells()
		b.compile("lost.o", "sell.c", "-I.", "-DNO_PROBES")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "prog", "sell.o", "main.o")
			require := b.names("prog")
			b.link(l, "prog", "lost.o", "main.o")
			b.finds(missing("shop:prog:sell:sold"), require, "prog")
			b.link(l, "prog", "sell.o", "main.o")
			for _, strip := range [][]string{{}, {"-g"}, {}} {
				b.clean(b.names("prog"), "prog")
				b.run(append([]string{b.machine.Tool("strip")}, append(strip, "prog")...)...)
			}
			b.clean(b.names("prog"), "prog")
		})
	})
}

// Nothing but names is printed, once each, in an order that the files' does not change.
func TestNamesAreLines(t *testing.T) {
	b := newBuild(t, combinations[0])
	b.program()
	b.run("cp", "fire.o", "again.o")
	names := b.output(converter, "list", "--names", "define.o", "fire.o", "again.o")
	expect.Equal(t, names, b.output(converter, "list", "--names", "again.o", "fire.o", "define.o"))
	expect.Equal(t, "app:again.o:fire:start\napp:again.o:main:start\napp:again.o:unused:start\napp:define.o:stop:stop\napp:fire.o:fire:start\napp:fire.o:main:start\napp:fire.o:unused:start\n", names)
	b.write("plain.c", "int plain;\n")
	b.compile("plain.o", "plain.c")
	ran := tools.Command{Directory: b.directory}.Result(b, converter, "list", "--names", "plain.o")
	expect.Equal(t, 1, ran.Status, "list: exit status")
	expect.Equal(t, "", ran.Stdout)
}

package header

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// randomPrograms is how many random programs a usual run compares.
const randomPrograms = 12

// memoryForms are how tracepoints of a random program are written.
var memoryForms = []struct {
	name   string
	header string
	probe  func(p memoryProbe) string // returns what defines PROBE_name
	flags  []string
	// everything is set for forms whose probes with numbers alone promise as much as those with pointers.
	everything bool
}{
	{name: "sdt", header: "#include <sdt.h>\nSDT_PROVIDER_DEFINE(mem);\n", probe: sdtProbe},
	{name: "provider", header: "#include \"mem.h\"\n", probe: providerProbe},
	{name: "dtrace", header: "#include <sdt.h>\n", probe: dtraceProbe},
	{name: "usdt", header: "#include <usdt.h>\n", probe: usdtProbe},
	{name: "sdt, all memory", header: "#include <sdt.h>\nSDT_PROVIDER_DEFINE(mem);\n", probe: sdtProbe, flags: []string{"-DSDT_MEMORY"}, everything: true},
	{name: "provider, all memory", header: "#include \"mem.h\"\n", probe: providerProbe, flags: []string{"-DSDT_MEMORY"}, everything: true},
	{name: "calls", header: "#include <sdt.h>\nSDT_PROVIDER_DEFINE(mem);\n", probe: sdtProbe, flags: []string{"-DSDT_CALLS"}, everything: true},
}

// memoryProbe is a tracepoint of a random program, the only one of its probe.
type memoryProbe struct {
	name  string
	types []string // of the arguments
	reads []string // expressions of the arguments a0, a1 and so on, and of global variables, each a long
}

// list joins what is made of the arguments, from a0 on.
func (p memoryProbe) list(separator string, f func(i int) string) string {
	var all []string
	for i := range p.types {
		all = append(all, f(i))
	}
	return strings.Join(all, separator)
}

func (p memoryProbe) parameters() string {
	return p.list(", ", func(i int) string { return fmt.Sprint("a", i) })
}

// define returns the line that makes PROBE_name a macro of a header.
func (p memoryProbe) define(macro string, args ...string) string {
	if len(p.types) > 0 {
		args = append(args, p.parameters())
	}
	return fmt.Sprintf("#define PROBE_%s(%s) %s(%s)\n", p.name, p.parameters(), macro, strings.Join(args, ", "))
}

func sdtProbe(p memoryProbe) string {
	return fmt.Sprintf("SDT_PROBE_DEFINE(mem, , , %s);\n", p.name) + p.define(fmt.Sprint("SDT_PROBE", len(p.types)), "mem", "", "", p.name)
}

func providerProbe(p memoryProbe) string { return p.define("MEM_" + strings.ToUpper(p.name)) }

func usdtProbe(p memoryProbe) string { return p.define("USDT", "mem", p.name) }

func dtraceProbe(p memoryProbe) string {
	args := []string{"mem___" + p.name}
	for i, typ := range p.types {
		args = append(args, typ, fmt.Sprint("a", i))
	}
	macro := "DTRACE_PROBE"
	if len(p.types) > 0 {
		macro += fmt.Sprint(len(p.types))
	}
	return fmt.Sprintf("#define PROBE_%s(%s) %s(%s)\n", p.name, p.parameters(), macro, strings.Join(args, ", "))
}

// memoryTypes is in the sources of a random program and of what reads for its twin.
const memoryTypes = `#include <stdlib.h>
#include <string.h>
struct leaf { int a; short b; long c; signed char d[6]; };
struct node { unsigned x; struct leaf in; struct leaf *leaf; struct node *next; char *text; void *more[2]; };
#ifdef __cplusplus
extern "C" {
#endif
#define GLOBAL __attribute__((used))
extern int g0; extern long g1; extern struct leaf g2; extern struct node *g3; extern char g4[16];
extern int outside(int);
`

const memoryTypesEnd = "#ifdef __cplusplus\n}\n#endif\n"

// memoryHelpers are functions that compilers inline, and that write.
const memoryHelpers = `
static inline struct leaf *fill_leaf(struct leaf *l, int v) { l->a = v; l->b = (short)(v * 3); l->c = 1000L + v; memset(l->d, v, sizeof l->d); return l; }
static inline struct node *link_node(struct node *n, struct leaf *l, char *text) { n->leaf = l; n->text = text; n->more[0] = l; n->more[1] = text; n->next = n; return n; }
static inline char *write_text(char *s, int size, int v) { int i; for (i = 0; i < size; i++) s[i] = (char)('a' + (v + i) % 26); return s; }
static inline int sum(const struct leaf *l) { return l->a + l->b + (int)l->c; }
`

// memoryProgram is a random program: functions with tracepoints that show tracers structures, buffers and global variables,
// much of which nothing else reads.
type memoryProgram struct {
	*rand.Rand
	everything bool // probes with numbers alone are read as others are
	code       strings.Builder
	probes     []memoryProbe
	leaves     []string // expressions of pointers to whole structures
	nodes      []string
	buffers    []string
}

func (m *memoryProgram) one(list ...string) string { return list[m.IntN(len(list))] }

func (m *memoryProgram) line(format string, args ...any) {
	fmt.Fprintf(&m.code, "\t"+format+"\n", args...)
}

// number returns an expression of an int.
func (m *memoryProgram) number() string {
	return m.one("i", "i + 1", "i * 5", "i ^ 3", fmt.Sprint(m.IntN(100)), "acc % 50", "g0", "(int)g1", "outside(i)", "g2.a")
}

// function writes a function of a number. Each structure and buffer is whole before its address is known to others.
func (m *memoryProgram) function(name string) {
	// No tracer reads the address of a variable that gcc takes from a table of the linker's, as with -fPIC: it is the one of the table.
	m.leaves, m.nodes, m.buffers = []string{"(&g2 + outside(0))"}, nil, []string{"(g4 + outside(0))"}
	fmt.Fprintf(&m.code, "%s int %s(int i, struct leaf given)\n{\n\tint acc = i;\n", m.one("static __attribute__((noinline))", "static inline", "__attribute__((noinline))"), name)
	m.leaves = append(m.leaves, "&given")
	for k := range 1 + m.IntN(2) {
		leaf := fmt.Sprintf("&l%d", k)
		if m.IntN(3) == 0 {
			leaf = fmt.Sprintf("l%d", k)
			m.line("struct leaf *l%d = (struct leaf *)%s(sizeof *l%d);", k, m.one("malloc", "__builtin_alloca"), k)
		} else {
			m.line("struct leaf l%d;", k)
		}
		switch m.IntN(3) {
		case 0:
			m.line("fill_leaf(%s, %s);", leaf, m.number())
		case 1:
			m.line("*(%s) = %s;", leaf, m.one("given", "g2"))
		case 2:
			m.line("(%s)->c = %s; (%s)->a = %s; (%s)->b = (short)(%s); memcpy((%s)->d, \"memory\", 6);", leaf, m.number(), leaf, m.number(), leaf, m.number(), leaf)
		}
		m.leaves = append(m.leaves, leaf)
	}
	for k := range 1 + m.IntN(2) {
		size := 16 + m.IntN(20)
		if m.IntN(2) == 0 {
			m.line("char s%d[%d];", k, size)
		} else {
			m.line("char *s%d = (char *)__builtin_alloca(%d + i);", k, size)
		}
		m.line("%s", m.one(fmt.Sprintf("write_text(s%d, 16, %s);", k, m.number()), fmt.Sprintf("memcpy(s%d, \"a buffer of text\", 16);", k), fmt.Sprintf("memset(s%d, %s, 16);", k, m.number())))
		m.buffers = append(m.buffers, fmt.Sprint("s", k))
	}
	for k := range 1 + m.IntN(2) {
		m.line("struct node n%d;", k)
		node := fmt.Sprintf("&n%d", k)
		m.line("n%d.x = (unsigned)(%s); n%d.in = *(%s);", k, m.number(), k, m.one(m.leaves...))
		m.line("link_node(%s, %s, %s);", node, m.one(m.leaves...), m.one(m.buffers...))
		m.nodes = append(m.nodes, node)
	}
	for range 4 + m.IntN(8) {
		if m.IntN(3) == 0 {
			m.probe()
		} else {
			m.statement()
		}
	}
	m.probe()
	m.line("g3 = 0;")
	m.line("return acc;\n}\n")
}

// statement writes one that changes what tracers see, or reads it.
func (m *memoryProgram) statement() {
	leaf, node, buffer, n := m.one(m.leaves...), m.one(m.nodes...), m.one(m.buffers...), m.number()
	change := m.one(
		fmt.Sprintf("(%s)->a = %s;", leaf, n),
		fmt.Sprintf("(%s)->b += (short)(%s);", leaf, n),
		fmt.Sprintf("(%s)->c = (%s)->c * 3 + %s;", leaf, leaf, n),
		fmt.Sprintf("(%s)->d[%d] = (signed char)(%s);", leaf, m.IntN(6), n),
		fmt.Sprintf("fill_leaf(%s, %s);", leaf, n),
		fmt.Sprintf("*(%s) = *(%s);", leaf, m.one(m.leaves...)),
		fmt.Sprintf("%s[%d] = (char)(%s);", buffer, m.IntN(16), n),
		fmt.Sprintf("write_text(%s, %d, %s);", buffer, 1+m.IntN(16), n),
		fmt.Sprintf("memmove(%s, %s, %d);", buffer, m.one(m.buffers...), 1+m.IntN(16)),
		fmt.Sprintf("(%s)->x = (unsigned)(%s);", node, n),
		fmt.Sprintf("(%s)->in = *(%s);", node, leaf),
		fmt.Sprintf("(%s)->leaf = %s;", node, leaf),
		fmt.Sprintf("(%s)->next = %s;", node, m.one(m.nodes...)),
		fmt.Sprintf("(%s)->text = %s;", node, buffer),
		fmt.Sprintf("(%s)->more[0] = (void *)(%s);", node, leaf),
		fmt.Sprintf("(%s)->more[1] = %s;", node, buffer),
		"g0 = "+n+";", "g0++;", "g1 += "+n+";", "g2.a = "+n+";", "g2.c++;", fmt.Sprintf("g4[%d] = (char)(%s);", m.IntN(16), n),
		fmt.Sprintf("acc += sum(%s);", leaf), fmt.Sprintf("acc ^= %s[%d];", buffer, m.IntN(16)), fmt.Sprintf("acc += (int)(%s)->x;", node),
	)
	switch m.IntN(5) {
	case 0:
		m.line("if (i & %d) { %s }", 1+m.IntN(3), change)
	case 1:
		m.line("{ int k; for (k = 0; k < %d; k++) { %s } }", 1+m.IntN(3), change)
	default:
		m.line("%s", change)
	}
}

// probe writes a tracepoint. Some of its arguments write, too.
func (m *memoryProgram) probe() {
	p := memoryProbe{name: fmt.Sprint("p", len(m.probes))}
	var args []string
	pointers, writes := false, false
	for i := range m.IntN(4) {
		a := fmt.Sprint("a", i)
		var typ, arg string
		switch m.IntN(6) {
		case 0, 1:
			typ, arg = "struct node *", m.one(m.nodes...)
			for range 1 + m.IntN(3) {
				p.reads = append(p.reads, m.nodeRead(fmt.Sprintf("((struct node *)%s)", a)))
			}
		case 2, 3:
			typ, arg = m.one("struct leaf *", "const struct leaf *", "void *"), m.one(m.leaves...)
			if !writes && m.IntN(3) == 0 {
				writes, arg = true, fmt.Sprintf("fill_leaf(%s, %s)", arg, m.number())
			}
			p.reads = append(p.reads, m.leafRead(fmt.Sprintf("((struct leaf *)%s)", a)))
		case 4:
			typ, arg = "char *", m.one(m.buffers...)
			if !writes && m.IntN(3) == 0 {
				writes, arg = true, fmt.Sprintf("write_text(%s, 7, %s)", arg, m.number())
			}
			p.reads = append(p.reads, m.textRead(fmt.Sprintf("((char *)%s)", a)))
		default:
			typ, arg = "int", m.one("i", "i * 3", "i ^ 1", "7", "0") // what no other argument writes
			p.reads = append(p.reads, fmt.Sprintf("(int)%s", a))
		}
		pointers = pointers || typ != "int"
		p.types, args = append(p.types, typ), append(args, arg)
	}
	if pointers || m.everything {
		m.line("g3 = %s;", m.one(m.nodes...))
		p.reads = append(p.reads, m.one("g0", "g1", "g2.a", "g2.c", fmt.Sprintf("g4[%d]", m.IntN(16))), m.nodeRead("g3"))
	}
	if p.reads == nil {
		p.reads = []string{"1"}
	}
	m.line("PROBE_%s(%s);", p.name, strings.Join(args, ", "))
	m.probes = append(m.probes, p)
}

func (m *memoryProgram) leafRead(leaf string) string {
	return leaf + m.one("->a", "->b", "->c", fmt.Sprintf("->d[%d]", m.IntN(6)))
}

func (m *memoryProgram) textRead(text string) string {
	return fmt.Sprintf("(signed char)%s[%d]", text, m.IntN(7))
}

func (m *memoryProgram) nodeRead(node string) string {
	for range m.IntN(3) {
		node += "->next"
	}
	switch m.IntN(6) {
	case 0:
		return node + "->x"
	case 1:
		return node + m.one("->in.a", "->in.b", "->in.c", fmt.Sprintf("->in.d[%d]", m.IntN(6)))
	case 2:
		return m.textRead(node + "->text")
	case 3:
		return m.leafRead(fmt.Sprintf("((struct leaf *)%s->more[0])", node))
	case 4:
		return m.textRead(fmt.Sprintf("((char *)%s->more[1])", node))
	}
	return m.leafRead(node + "->leaf")
}

// newMemoryProgram makes a program from a number.
func newMemoryProgram(number int, everything bool) *memoryProgram {
	m := &memoryProgram{Rand: rand.New(rand.NewPCG(43, uint64(number))), everything: everything}
	m.code.WriteString("int g0 GLOBAL; long g1 GLOBAL; struct leaf g2 GLOBAL; struct node *g3 GLOBAL; char g4[16] GLOBAL;\n")
	functions := 2 + m.IntN(3)
	for f := range functions {
		m.function(fmt.Sprint("f", f))
	}
	m.code.WriteString("int main(void)\n{\n\tstruct leaf l = { 1, 2, 3, \"word\" };\n\tint i, acc = 0;\n\tfor (i = 1; i < 4; i++) {\n")
	for f := range functions {
		fmt.Fprintf(&m.code, "\t\tacc += f%d(i, l); l.a++;\n", f)
	}
	m.code.WriteString("\t}\n\treturn acc & 0;\n}\n")
	return m
}

// source returns the program with tracepoints of a form, or its twin's, whose tracepoints are calls.
func (m *memoryProgram) source(header string, probe func(memoryProbe) string) string {
	var s strings.Builder
	s.WriteString(header + memoryTypes)
	for _, p := range m.probes {
		if header == "" {
			s.WriteString(p.reader() + ";\n" + p.define("read_"+p.name))
		}
	}
	s.WriteString(memoryTypesEnd)
	for _, p := range m.probes {
		if header != "" {
			s.WriteString(probe(p))
		}
	}
	s.WriteString(memoryHelpers + m.code.String())
	return s.String()
}

// reader returns the head of the function that reads what a tracer does.
func (p memoryProbe) reader() string {
	parameters := p.list(", ", func(i int) string { return fmt.Sprintf("%s a%d", p.types[i], i) })
	if parameters == "" {
		parameters = "void"
	}
	return fmt.Sprintf("void read_%s(%s)", p.name, parameters)
}

// readers returns the source of those functions.
func (m *memoryProgram) readers() string {
	var s strings.Builder
	s.WriteString("#include <stdio.h>\n" + memoryTypes)
	for _, p := range m.probes {
		fmt.Fprintf(&s, "%s { printf(\"> %s%s\\n\"", p.reader(), p.name, strings.Repeat(" %ld", len(p.reads)))
		for _, read := range p.reads {
			fmt.Fprintf(&s, ", (long)(%s)", read)
		}
		s.WriteString("); }\n")
	}
	return s.String() + memoryTypesEnd
}

// provider returns the provider file of the probes.
func (m *memoryProgram) provider() string {
	var s strings.Builder
	s.WriteString("provider mem {\n")
	for _, p := range m.probes {
		fmt.Fprintf(&s, "\tprobe %s(%s);\n", p.name, p.list(", ", func(i int) string { return p.types[i] }))
	}
	return s.String() + "};\n"
}

// commands has gdb print what the readers do at each hit.
func (m *memoryProgram) commands() string {
	var s strings.Builder
	for _, p := range m.probes {
		s.WriteString(p.command("-probe-stap mem:"+p.name, func(i int) string { return fmt.Sprint("$_probe_arg", i) }))
	}
	return s.String()
}

var argumentName = regexp.MustCompile(`\ba\d\b`)

// command has gdb print at a breakpoint what the reader of a probe does.
func (p memoryProbe) command(where string, argument func(i int) string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "break %s\ncommands\nsilent\nprintf \"> %s%s\\n\"", where, p.name, strings.Repeat(" %ld", len(p.reads)))
	for _, read := range p.reads {
		fmt.Fprintf(&s, ", (long)(%s)", argumentName.ReplaceAllStringFunc(read, func(name string) string { return argument(int(name[1] - '0')) }))
	}
	s.WriteString("\ncontinue\nend\n")
	return s.String()
}

// memoryBuild is how a random program is compiled and linked.
type memoryBuild struct {
	*testing.T
	compiler  toolchains.Compiler
	level     string
	form      int
	cxx       bool
	lto       *toolchains.LTO
	directory string
	wrappers  string // for -B
}

func (b *memoryBuild) String() string {
	form := memoryForms[b.form].name
	if b.lto != nil {
		form += " " + b.lto.Linker.Path + " " + b.lto.Flag
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s, C++ %t, %s", b.compiler.Name, b.level, b.cxx, form))
}

// compile compiles a source to an object of the same name.
func (b *memoryBuild) compile(name, source string, command []string, flags ...string) string {
	b.Helper()
	language := "c"
	if b.cxx {
		language = "c++"
	}
	path := filepath.Join(b.directory, name)
	disk.Write(b, path+".source", source)
	words := slices.Concat(command[1:], []string{"-x" + language, "-w", "-g", "-fwrapv", "-I" + b.directory, "-I" + include}, flags, []string{"-c", path + ".source", "-o", path + ".o"})
	tools.Must(b, command[0], words...)
	return path + ".o"
}

// compare returns what a tracer reads of the program, and what its twin does.
func (b *memoryBuild) compare(m *memoryProgram) (got, want []string) {
	b.Helper()
	command := toolchains.AMD64.CC(b.compiler)
	if b.cxx {
		command = toolchains.AMD64.CXX(b.compiler)
	}
	flags := []string{b.level}
	if b.lto != nil {
		flags = append(flags, b.lto.Flag)
	}
	disk.Write(b, filepath.Join(b.directory, "mem.d"), m.provider())
	tools.Must(b, converter, "provider", "-h", "-s", filepath.Join(b.directory, "mem.d"), "-o", filepath.Join(b.directory, "mem.h"))
	form := memoryForms[b.form]
	program := b.compile("program", m.source(form.header, form.probe), command, slices.Concat(flags, form.flags)...)
	twin := b.compile("twin", m.source("", nil), command, flags...)
	readers := b.compile("readers", m.readers(), command, "-O0")
	outside := b.compile("outside", memoryTypes+"int outside(int i) { return i * 7; }\n"+memoryTypesEnd, command, "-O0")
	exe := b.link("program", flags, program, outside)
	twinExe := b.link("twin", flags, twin, readers, outside)
	want = memoryLines(tools.Must(b, twinExe))
	return memoryLines(tools.GDB(b, "gdb", exe, m.commands()+"run\n")), want
}

// link links objects, through sdtconvert.
func (b *memoryBuild) link(name string, flags []string, objects ...string) string {
	b.Helper()
	exe := filepath.Join(b.directory, name)
	command, linker := []string{"gcc"}, "ld"
	if b.lto != nil {
		command, linker = append(toolchains.AMD64.CC(b.compiler), flags...), b.lto.Linker.Path
	}
	words := slices.Concat(command[1:], []string{"-B" + b.wrappers, "-o", exe}, objects)
	tools.Command{Env: []string{"SDTCONVERT_LD=" + linker}}.Must(b, command[0], words...)
	return exe
}

// memoryLines returns the lines that gdb or the readers print of hits.
func memoryLines(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		if hit, ok := strings.CutPrefix(line, "> "); ok {
			lines = append(lines, strings.TrimSpace(hit))
		}
	}
	return lines
}

// memoryWrappers returns a directory for -B.
func memoryWrappers(t *testing.T) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "wrappers")
	expect.OK(t, tools.LinkAs(directory, converter, "ld"))
	return directory
}

// check compares one program, and reports how many hits it had.
func (b *memoryBuild) check(number int) int {
	b.Helper()
	m := newMemoryProgram(number, memoryForms[b.form].everything)
	got, want := b.compare(m)
	if len(want) == 0 {
		b.Errorf("program %d (%v) has no hit", number, b)
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			saw := "nothing"
			if i < len(got) {
				saw = got[i]
			}
			b.Errorf("program %d (%v): at hit %d of %d a tracer reads %q, and a function would read %q", number, b, i, len(want), saw, want[i])
			return len(want)
		}
	}
	if len(got) > len(want) {
		b.Errorf("program %d (%v): a tracer sees %d hits of %d", number, b, len(got), len(want))
	}
	return len(want)
}

// TestRandomMemory compares what gdb reads at each tracepoint, through pointers and of global variables, with what a
// function reads that a twin calls there.
func TestRandomMemory(t *testing.T) {
	tools.Need(t, "gdb", "gcc", "g++")
	n, wrappers := tools.Cases(t, randomPrograms), memoryWrappers(t)
	levels := []string{"-O2", "-O1", "-O3", "-Os", "-O0"}
	compilers := []toolchains.Compiler{toolchains.GCC, toolchains.GCC, toolchains.OldClang, toolchains.Clang}
	var mutex sync.Mutex
	hits, counts := 0, map[string]int{}
	t.Run("programs", func(t *testing.T) {
		for i := range n {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				r := rand.New(rand.NewPCG(44, uint64(i)))
				b := memoryBuild{T: t, compiler: compilers[i%len(compilers)], level: levels[i%len(levels)],
					form: i % len(memoryForms), cxx: r.IntN(3) == 0, directory: t.TempDir(), wrappers: wrappers}
				if lto := toolchains.LTOs()[r.IntN(len(toolchains.LTOs()))]; lto.Compiler == b.compiler && b.level != "-O0" {
					b.lto = &lto
				}
				found := b.check(i)
				mutex.Lock()
				defer mutex.Unlock()
				hits += found
				for _, what := range []string{b.compiler.Name, b.level, memoryForms[b.form].name} {
					counts[what]++
				}
			})
		}
	})
	t.Logf("%d random programs, %d hits: %v", n, hits, counts)
}

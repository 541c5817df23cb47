package providers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// specimen is a provider file that was made by a grammar, and what it declares.
type specimen struct {
	text       string
	preprocess bool // it needs -C
	mutated    bool // a token was changed, so probes may be others
	probes     []declared
}

// declared is a probe of a specimen.
type declared struct {
	provider, name string
	args           []argument
}

// argument is one as it stands in the file, and its type as a parameter has it, both without
// white space.
type argument struct{ whole, typ string }

// grammar makes one specimen.
type grammar struct {
	*rand.Rand
	specimen
	tokens []string // of the file; "\n" ends a line
	used   map[string]bool
	macros []string // that stand for a type
	plain  bool     // types are those that SystemTap's grammar knows
}

// newSpecimen makes a file. The same seed makes the same.
func newSpecimen(seed uint64) *specimen {
	g := &grammar{Rand: rand.New(rand.NewPCG(seed, 1)), used: map[string]bool{}}
	g.preprocess, g.plain = g.IntN(4) == 0, g.IntN(4) > 0
	if g.preprocess {
		for i := range g.IntN(4) {
			name := fmt.Sprintf("Type%d", i)
			g.macros = append(g.macros, name)
			g.line("#define " + name + " " + g.oneOf("int", "unsigned int", "const char *", "struct s *"))
		}
	}
	for range 1 + g.IntN(3) {
		g.around()
		g.provider()
	}
	if !g.plain { // SystemTap's grammar knows nothing behind the last provider
		g.around()
	}
	if g.IntN(4) == 0 {
		g.mutate()
	}
	g.text = g.spell()
	return &g.specimen
}

func (g *grammar) oneOf(all ...string) string { return all[g.IntN(len(all))] }

func (g *grammar) put(tokens ...string) { g.tokens = append(g.tokens, tokens...) }

// line puts a line of its own.
func (g *grammar) line(text string) { g.put("\n", text, "\n") }

// around puts what may stand beside providers.
func (g *grammar) around() {
	for range g.IntN(3) {
		switch g.IntN(6) {
		case 0:
			g.put(strings.Fields("typedef struct a { int x ; char * y ; } a_t ;")...)
		case 1:
			g.put(strings.Fields("struct conn { int fd ; } ;")...)
		case 2:
			g.put("typedef", g.oneOf("int", "unsigned", "char"), g.oneOf("count_t", "word"), ";")
		case 3:
			g.line("/* what a probe ( int ) ; of a { is for */")
		case 4:
			g.line("#pragma D depends_on library net.d")
		case 5:
			g.line("// it is { not closed")
		}
	}
}

func (g *grammar) provider() {
	name := g.oneOf("shop", "Shop", "my_shop", "shop2go", "_s", "a__b", "postgresql")
	for g.used[name] && g.IntN(20) > 0 {
		name += g.oneOf("x", "_y")
	}
	g.used[name] = true
	g.put("provider", name, "{")
	for range 1 + g.IntN(5) {
		if g.IntN(6) == 0 {
			g.line("/* " + g.oneOf("probe", "it's", "{", "provider") + " */")
		}
		g.conditional(name)
	}
	g.put("}")
	if g.IntN(10) > 0 {
		g.put(";")
	}
	if g.IntN(4) == 0 {
		g.line("#pragma D attributes Evolving/Evolving/Common provider " + name + " " + g.oneOf("provider", "name", "args"))
	}
}

// conditional puts a probe, perhaps within a condition, whose value is known.
func (g *grammar) conditional(provider string) {
	if !g.preprocess || g.IntN(3) > 0 {
		g.probe(provider, true)
		return
	}
	conditions := []struct {
		text string
		is   bool
	}{
		{"-1 > 0u", true}, {"0xffffffffffffffff > 0", true}, {"1 ? 0 : 1/0", false}, {"defined NOTHING", false}, {"__linux__", true},
		{"!defined(__APPLE__)", true}, {"-1 > 0", false}, {"2 == 1 + 1 && 3", true},
	}
	c := conditions[g.IntN(len(conditions))]
	g.line("#if " + c.text)
	g.probe(provider, c.is)
	if g.IntN(2) == 0 {
		g.line("#else")
		g.probe(provider, !c.is)
	}
	g.line("#endif")
}

func (g *grammar) probe(provider string, is bool) {
	name := g.oneOf("sent", "order__placed", "entry", "return", "__x", "go2", "a_b", "A", "probe1", "provider_x", "done__")
	for g.used[provider+":"+name] && g.IntN(60) > 0 {
		name += g.oneOf("z", "__q", "y__r")
	}
	d := declared{provider: provider, name: name}
	g.put("probe", name, "(")
	count := g.IntN(5)
	for i := range count {
		if i > 0 {
			g.put(",")
		}
		d.args = append(d.args, g.argument(i))
	}
	if count == 0 && g.IntN(3) == 0 {
		g.put("void")
	}
	g.put(")")
	if count > 0 && g.IntN(8) == 0 {
		g.put(":", "(")
		for i := range count {
			if i > 0 {
				g.put(",")
			}
			g.put("int")
		}
		g.put(")")
	}
	if g.IntN(120) > 0 {
		g.put(";")
	}
	if is {
		g.used[provider+":"+name] = true
		g.probes = append(g.probes, d)
	}
}

func (g *grammar) argument(i int) argument {
	typ, after := g.typeName(), []string(nil)
	if stars := max(0, g.IntN(4)-1); stars > 0 && g.plain {
		typ = append(typ, strings.Repeat("*", stars))
	} else {
		typ = append(typ, slices.Repeat([]string{"*"}, stars)...)
	}
	name := ""
	if g.IntN(2) == 0 {
		name = g.oneOf("x", "count", "errno", "class", "arg0", "s_1") + fmt.Sprint(i)
		if g.IntN(8) == 0 {
			after = []string{"[", g.oneOf("10", "MAX"), "]"}
		}
	}
	g.put(typ...)
	if name != "" {
		g.put(name)
	}
	g.put(after...)
	is := argument{strings.Join(typ, "") + name + strings.Join(after, ""), strings.Join(typ, "")}
	if after != nil {
		is.typ += "*"
	}
	return is
}

// typeName returns a type without pointers.
func (g *grammar) typeName() (typ []string) {
	if len(g.macros) > 0 && g.IntN(3) == 0 {
		return []string{g.oneOf(g.macros...)}
	}
	if g.plain {
		typ = strings.Fields(g.oneOf("", "", "", "const", "unsigned", "struct"))
		typ = append(typ, g.oneOf("int", "char", "long", "a_t", "uint8_t", "size_t", "string", "uintptr_t", "Oid"))
		if typ[0] == "struct" || typ[0] == "unsigned" {
			typ[1] = g.oneOf(map[string][]string{"struct": {"conn", "a"}, "unsigned": {"int", "char", "long"}}[typ[0]]...)
		}
	} else {
		typ = strings.Fields(g.oneOf("", "", "", "const", "volatile"))
		typ = append(typ, strings.Fields(g.oneOf("unsigned int", "long", "unsigned long long", "char", "short int", "signed char", "double",
			"struct conn", "union a", "enum probe_s", "a_t", "int", "int", "uintptr_t"))...)
	}
	if g.IntN(8) == 0 {
		typ = append(typ, "const")
	}
	return typ
}

// mutate drops, repeats, swaps or inserts a token.
func (g *grammar) mutate() {
	g.mutated = true
	at := g.IntN(len(g.tokens))
	switch g.IntN(4) {
	case 0:
		g.tokens = append(g.tokens[:at], g.tokens[at+1:]...)
	case 1:
		g.tokens = append(g.tokens[:at+1], g.tokens[at:]...)
	case 2:
		if at+1 < len(g.tokens) {
			g.tokens[at], g.tokens[at+1] = g.tokens[at+1], g.tokens[at]
		}
	case 3:
		insert := g.oneOf("(", ")", "{", "}", ";", ",", "*", "int", "probe", "provider", "\"", "'", "/*", "*/", "//", "#", "[", "3", "-", ":")
		g.tokens = append(g.tokens[:at], append([]string{insert}, g.tokens[at:]...)...)
	}
}

// spell writes the tokens, with any white space and remarks between them.
func (g *grammar) spell() string {
	var b strings.Builder
	fresh := true
	for _, t := range g.tokens {
		own := strings.HasPrefix(t, "#") || strings.HasPrefix(t, "//")
		switch {
		case t == "\n" && fresh:
			continue
		case t == "\n":
		case fresh || own:
		case g.IntN(12) == 0:
			b.WriteString(g.oneOf("\n", "\t", "\n\n\t", " /* x */ ", " /* a\n * b */\n", "\r\n"))
		default:
			b.WriteString(" ")
		}
		b.WriteString(t)
		fresh = t == "\n"
	}
	return b.String() + "\n"
}

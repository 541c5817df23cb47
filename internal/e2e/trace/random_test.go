package trace

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// argumentTypes are types of arguments, the format by which the program prints one as the tracer does, and
// expressions of i and of what the program has.
var argumentTypes = []struct {
	name, format string
	values       []string
}{
	{"int", "%d", []string{"i", "-i", "7", "table[i % 8]", "(int)x"}},
	{"unsigned", "%u", []string{"(unsigned)i * 2654435761u", "9u", "(unsigned)x"}},
	{"long", "%ld", []string{"x", "-x", "deep.field", "*far", "(long)-5"}},
	{"unsigned long", "%lu", []string{"(unsigned long)x", "~0ul"}},
	{"short", "%hd", []string{"(short)x", "shorts[i % 4]"}},
	{"unsigned short", "%hu", []string{"(unsigned short)x"}},
	{"signed char", "%hhd", []string{"(signed char)x", "bytes[i % 16]"}},
	{"unsigned char", "%hhu", []string{"(unsigned char)x"}},
	{"void *", "%#lx", []string{"(void *)((unsigned long)x | 1)", "(void *)&table"}},
	{"char *", "\\\"%s\\\"", []string{"text", "\"constant\"", "buffer"}},
	{"_Bool", "%s", []string{"(_Bool)(x & 1)"}},
	{"double", "%g", []string{"i * 0.25 - 3", "x % 1000 / 8.0"}},
	{"float", "%g", []string{"i * 0.5f - 7"}},
}

// styles are ways to write tracepoints: the flags, the macro's prefix, and whether types are recorded.
var styles = []struct {
	name   string
	flags  []string
	theirs bool // SystemTap's header
}{
	{"nops", nil, false},
	{"short", []string{"-DSDT_SHORT_NOPS"}, false},
	{"calls", []string{"-DSDT_CALLS"}, false},
	{"tails", []string{"-DSDT_CALLS", "-DTAILS"}, false},
	{"theirs", []string{"-DTHEIRS"}, true},
	{"wide", []string{"-DTHEIRS", "-DSTAP_SDT_ARG_CONSTRAINT=g"}, true},
}

// randomProgram makes a program of random tracepoints, which prints each to a file, too.
func randomProgram(r *rand.Rand, theirs bool) string {
	var b strings.Builder
	b.WriteString(`#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef THEIRS
#include <sys/sdt.h>
#else
#include <sdt.h>
#endif
static FILE *out;
static int table[8] = { 1, -2, 3, -4, 5, -6, 7, -8 };
static short shorts[4] = { -1, 300, -300, 32767 };
static signed char bytes[16] = { -128, 127, 3 };
struct deep { long pad[3]; long field; } deep;
static char buffer[64];
#ifdef TAILS
#define PROBED __attribute__((noinline))
#else
#define PROBED static inline __attribute__((always_inline))
#endif
`)
	most := 8
	if theirs {
		most = 12
	}
	count := 3 + r.IntN(5)
	for n := range count {
		arguments := r.IntN(most + 1)
		var formats, values, probed []string
		for range arguments {
			typ := argumentTypes[r.IntN(len(argumentTypes))]
			value := typ.values[r.IntN(len(typ.values))]
			format, shown := typ.format, fmt.Sprintf("(%s)(%s)", typ.name, value)
			switch {
			case theirs && strings.Contains(typ.name, "*"):
				format = "%#lx"
				if value[0] == '"' { // which has no symbol
					value, shown = "text", "text"
				}
			case theirs && typ.name == "_Bool":
				format = "%d"
			case theirs && typ.name == "unsigned long": // may be a pointer, for all that a note says
				format = "%#lx"
				if value == "~0ul" {
					value, shown = "(unsigned long)x | 1", "(unsigned long)x | 1"
				}
			case typ.name == "_Bool":
				shown = "(" + shown + ") ? \"true\" : \"false\""
			}
			formats, values = append(formats, format), append(values, shown)
			if theirs {
				probed = append(probed, fmt.Sprintf("(%s)(%s)", typ.name, value))
			} else {
				probed = append(probed, typ.name, value)
			}
		}
		macro := fmt.Sprintf("DTRACE_PROBE%d(app___p%d, %s)", arguments, n, strings.Join(probed, ", "))
		if theirs {
			macro = fmt.Sprintf("STAP_PROBE%d(app, p%d, %s)", arguments, n, strings.Join(probed, ", "))
		}
		if arguments == 0 {
			macro = strings.Replace(strings.Replace(macro, "PROBE0", "PROBE", 1), ", )", ")", 1)
		}
		fmt.Fprintf(&b, "PROBED void print%d(int i, long x, long *far, char *text)\n{\n\tfprintf(out, \"app:p%d(%s)\\n\"%s);\n}\n",
			n, n, strings.Join(formats, ", "), prefixed(values))
		fmt.Fprintf(&b, "PROBED void probe%d(int i, long x, long *far, char *text)\n{\n\t%s;\n}\n", n, macro)
	}
	b.WriteString(`int main(int argc, char **argv)
{
	out = fopen(argv[1], "w");
	long x = 88172645463325252, place = 1;
	char words[16];
	for (int i = 0; i < 200; i++) {
		x ^= x << 13; x ^= (unsigned long)x >> 7; x ^= x << 17;
		deep.field = x; place = -x;
		sprintf(words, "w%d", i); sprintf(buffer, "b%d", i * 3);
`)
	for n := range count {
		fmt.Fprintf(&b, "\t\tprint%d(i, x, &place, words); probe%d(i, x, &place, words);\n", n, n)
	}
	b.WriteString("\t}\n\treturn fclose(out);\n}\n")
	return b.String()
}

func prefixed(values []string) string {
	text := ""
	for _, v := range values {
		text += ", " + v
	}
	return text
}

// Each event of a random program is what the program prints at that place.
func TestRandom(t *testing.T) {
	needPtrace(t)
	for seed := range tools.Cases(t, 18) {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		style := styles[seed%len(styles)]
		compiler := []toolchains.Compiler{toolchains.GCC, toolchains.Clang}[r.IntN(2)]
		level := []string{"-O0", "-O1", "-O2", "-Os"}[r.IntN(4)]
		link := [][]string{nil, {"-no-pie", "-fno-pie"}, {"-static"}, {"-static-pie", "-fPIE"}}[r.IntN(4)]
		traps := r.IntN(6) == 0
		t.Run(fmt.Sprintf("%d-%s-%s%s", seed, style.name, compiler.Name, level), func(t *testing.T) {
			t.Parallel()
			if style.theirs {
				if _, err := os.Stat("/usr/include/x86_64-linux-gnu/sys/sdt.h"); err != nil {
					tools.Unavailable(t, "no sys/sdt.h")
				}
			}
			source := write(t, "app.c", randomProgram(r, style.theirs))
			flags := append(append([]string{level}, link...), style.flags...)
			program := compile(t, toolchains.AMD64.CC(compiler), source, flags...)
			if !style.theirs { // whose arguments are in notes alone
				stripped(t, program, seed/len(styles)%3)
			}
			out := filepath.Join(t.TempDir(), "out")
			args := []string{"--", program, out}
			if traps {
				args = append([]string{"--breakpoints"}, args...)
			}
			got := trace(t, args...)
			expect.OK(t, got.err, "%s", got.messages)
			for i, line := range got.lines {
				got.lines[i] = withoutFunction(line)
			}
			wantLines(t, lines(t, out), got.lines)
			expect.Contains(t, got.messages, ", 0 dropped;")
			// Where SystemTap's NOP of one byte is, the next instruction says where a jump goes.
			if traps != strings.Contains(got.messages, "breakpoints") && !style.theirs {
				t.Errorf("got %s", got.messages)
			}
			m := newModel(r, got.lines)
			filter := m.filter(3)
			got = trace(t, slices.Concat([]string{"--allow-none", "--filter", filter.text}, args)...)
			for i, line := range got.lines {
				got.lines[i] = withoutFunction(line)
			}
			t.Log("filter:", filter.text)
			wantLines(t, selected(lines(t, out), filter), got.lines)
			for range 2 {
				filter, keys := m.filter(2), m.keys()
				counted := tools.Command{}.Result(t, converter, slices.Concat([]string{"trace", "-c", "--allow-none", "--filter", filter.text, "--by", strings.Join(keys, ",")}, args)...)
				expect.Equal(t, 0, counted.Status, "%s", counted.Stderr)
				expect.Equal(t, countsBy(selected(lines(t, out), filter), keys), countsShown(counted.Stdout), "%s by %s: %s", filter.text, keys, counted.Stderr)
			}
		})
	}
}

// stripped strips a program, or leaves it as it is: the tables of functions say then where arguments are.
func stripped(t *testing.T, program string, way int) {
	t.Helper()
	switch way {
	case 1:
		tools.Must(t, "strip", "-s", program)
	case 2:
		llvmStrip := toolchains.LLVMPrograms() + "/llvm-strip"
		tools.Need(t, llvmStrip)
		if _, err := tools.Try(llvmStrip, "--strip-sections", program); err != nil { // of some static programs it reads no relocations
			tools.Must(t, "strip", "-s", program)
		}
	}
}

// withoutFunction leaves provider and name of a probe's name.
func withoutFunction(line string) string {
	name, arguments, _ := strings.Cut(line, "(")
	parts := strings.Split(name, ":")
	return parts[0] + ":" + parts[len(parts)-1] + "(" + arguments
}

// model makes random filters and keys for events, as a program has printed them, and says what they are true for.
type model struct {
	r       *rand.Rand
	events  []string
	numbers []int // arguments that are a text in no event: of these an address would be compared
}

// modelArguments are the arguments that filters and keys have; no event has all.
var modelArguments = []int{0, 1, 2, 3, 4, 5, 11}

func newModel(r *rand.Rand, events []string) *model {
	isText := func(argument int) bool {
		return slices.ContainsFunc(events, func(event string) bool { return strings.HasPrefix(argumentOf(event, argument), "\"") })
	}
	return &model{r, events, slices.DeleteFunc(slices.Clone(modelArguments), isText)}
}

// predicate is a part of a filter.
type predicate struct {
	text  string
	holds func(event string) bool
}

// filter returns a filter of parentheses up to a depth.
func (m *model) filter(depth int) predicate {
	if depth == 0 || m.r.IntN(3) == 0 {
		return m.comparison()
	}
	a, b, c := m.filter(depth-1), m.filter(depth-1), m.comparison()
	switch m.r.IntN(5) {
	case 0:
		return predicate{"!(" + a.text + ")", func(e string) bool { return !a.holds(e) }}
	case 1:
		return predicate{"(" + a.text + ") || (" + b.text + ")", func(e string) bool { return a.holds(e) || b.holds(e) }}
	case 2:
		return predicate{"(" + a.text + ") && " + c.text, func(e string) bool { return a.holds(e) && c.holds(e) }}
	}
	d := m.comparison() // both are made where a probe fires
	return predicate{c.text + " && " + d.text, func(e string) bool { return c.holds(e) && d.holds(e) }}
}

// operators are the operators, and the orders for which they hold.
var operators = map[string]func(order int) bool{
	"==": func(o int) bool { return o == 0 }, "!=": func(o int) bool { return o != 0 }, "<": func(o int) bool { return o < 0 },
	"<=": func(o int) bool { return o <= 0 }, ">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 },
}

func (m *model) comparison() predicate {
	operator := []string{"==", "!=", "<", "<=", ">", ">="}[m.r.IntN(6)]
	holds, event := operators[operator], m.events[m.r.IntN(len(m.events))]
	argument, other := m.numbers[m.r.IntN(len(m.numbers))], m.numbers[m.r.IntN(len(m.numbers))]
	compare := func(x, y *big.Rat) bool { return x != nil && y != nil && holds(x.Cmp(y)) }
	switch m.r.IntN(8) {
	case 0:
		return predicate{fmt.Sprintf("arg%d %s arg%d", argument, operator, other), func(e string) bool { return compare(numberOf(e, argument), numberOf(e, other)) }}
	case 1:
		number := big.NewRat(int64(m.r.IntN(80)-40), 8)
		return predicate{fmt.Sprintf("%s %s arg%d", number.FloatString(3), operator, argument), func(e string) bool { return compare(number, numberOf(e, argument)) }}
	case 2:
		name := nameOf(event)
		return predicate{fmt.Sprintf("name %s %q", operator, name), func(e string) bool { return holds(strings.Compare(nameOf(e), name)) }}
	case 3, 4:
		argument = modelArguments[m.r.IntN(len(modelArguments))]
		text, ok := textOf(event, argument)
		if !ok {
			text = "w1"
		}
		if m.r.IntN(2) == 0 {
			glob := text[:1+m.r.IntN(len(text))] + "*"
			return predicate{fmt.Sprintf("arg%d ~ %q", argument, glob), func(e string) bool {
				text, ok := textOf(e, argument)
				matches, _ := path.Match(glob, text)
				return ok && matches
			}}
		}
		return predicate{fmt.Sprintf("arg%d %s %q", argument, operator, text), func(e string) bool {
			other, ok := textOf(e, argument)
			return ok && holds(strings.Compare(other, text))
		}}
	}
	number := big.NewRat(int64(m.r.IntN(9))-4, 1)
	if value := numberOf(event, argument); value != nil && value.IsInt() {
		if sum := new(big.Rat).Add(number, value); sum.Num().IsInt64() {
			number = sum
		}
	}
	return predicate{fmt.Sprintf("arg%d %s %s", argument, operator, number.Num()), func(e string) bool { return compare(numberOf(e, argument), number) }}
}

// keys returns one or two keys.
func (m *model) keys() (keys []string) {
	for range 1 + m.r.IntN(2) {
		key := fmt.Sprintf("arg%d", modelArguments[m.r.IntN(len(modelArguments))])
		keys = append(keys, []string{"name", "provider", key, key, key, key}[m.r.IntN(6)])
	}
	return keys
}

// selected returns the events for which a filter is true.
func selected(events []string, filter predicate) []string {
	return slices.DeleteFunc(events, func(e string) bool { return !filter.holds(e) })
}

// countsBy counts events by keys.
func countsBy(events, keys []string) map[string]int {
	all := map[string]int{}
	for _, e := range events {
		var parts []string
		for _, key := range keys {
			switch key {
			case "name":
				key = nameOf(e)
			case "provider":
				key = "app"
			default:
				argument, _ := strconv.Atoi(strings.TrimPrefix(key, "arg"))
				if key = argumentOf(e, argument); key == "" {
					key = "?"
				}
			}
			parts = append(parts, key)
		}
		all[strings.Join(parts, ", ")]++
	}
	return all
}

var countedKey = regexp.MustCompile(`(?m)^ *(\d+) (.*)$`)

// countsShown reads what -c --by has printed.
func countsShown(text string) map[string]int {
	all := map[string]int{}
	for _, match := range countedKey.FindAllStringSubmatch(text, -1) {
		all[match[2]], _ = strconv.Atoi(match[1])
	}
	return all
}

func nameOf(event string) string {
	name, _, _ := strings.Cut(event, "(")
	return name[strings.LastIndex(name, ":")+1:]
}

// argumentOf returns an argument of an event as it was printed, "" for none.
func argumentOf(event string, n int) string {
	_, text, _ := strings.Cut(strings.TrimSuffix(event, ")"), "(")
	if arguments := strings.Split(text, ", "); n < len(arguments) {
		return arguments[n]
	}
	return ""
}

// textOf returns an argument of an event that is a text, or shown as one.
func textOf(event string, n int) (text string, ok bool) {
	switch argument := argumentOf(event, n); {
	case argument == "true" || argument == "false":
		return argument, true
	case strings.HasPrefix(argument, "\""):
		return strings.Trim(argument, "\""), true
	}
	return "", false
}

// numberOf returns an argument of an event that is a number, nil for others.
func numberOf(event string, n int) *big.Rat {
	argument := argumentOf(event, n)
	switch argument {
	case "true":
		return big.NewRat(1, 1)
	case "false":
		return new(big.Rat)
	}
	if value, ok := new(big.Int).SetString(argument, 0); ok {
		return new(big.Rat).SetInt(value)
	}
	if value, ok := new(big.Rat).SetString(argument); ok {
		return value
	}
	return nil
}

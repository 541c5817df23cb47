package trace

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

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

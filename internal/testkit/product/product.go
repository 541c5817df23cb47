// Package product runs tests of a product of dimensions, such as machine x compiler x
// linker x mode.
//
// The full product repeats itself: most faults show wherever two values meet, whatever
// the others are. So a usual run takes a covering array: a part of the product in which
// every pair of values that meets in the product meets at least once. SDTCONVERT_TESTS=all
// runs the whole product, and -short a test or a few of each product, others for others,
// so that the products of a package have most values. A test may leave pairs to others of
// its package (Tests.Singly).
//
// A test that is left out is not skipped: it does not exist in that run. So a skip keeps
// its meaning, that the unconverted twin fails too.
package product

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/alone"
)

// All reports whether whole products are to be run.
func All() bool { return os.Getenv("SDTCONVERT_TESTS") == "all" }

// strength returns how many values have to meet: 0 stands for all of them.
func strength() int {
	switch {
	case All():
		return 0
	case testing.Short():
		return 1
	}
	return 2
}

// Tests are the tests of a product, in the order in which they run.
type Tests struct {
	// Dimensions are what the values of a test are of: machine, compiler, linker and so on.
	Dimensions []string
	// Singly is for a test whose pairs of values other tests of the package have: its usual
	// run has each value, not each pair.
	Singly bool

	names  []string
	rows   [][]string
	tests  []func(t *testing.T)
	always []bool
}

// New returns an empty product of some dimensions.
func New(dimensions ...string) *Tests { return &Tests{Dimensions: dimensions} }

// Add adds a test under a name. values has one for each dimension.
func (p *Tests) Add(name string, values []string, test func(t *testing.T)) {
	p.add(name, values, test, false)
}

// Always adds a test that every run has, because more than two of its values make it
// hard.
func (p *Tests) Always(name string, values []string, test func(t *testing.T)) {
	p.add(name, values, test, true)
}

func (p *Tests) add(name string, values []string, test func(t *testing.T), always bool) {
	if len(values) != len(p.Dimensions) {
		panic(fmt.Sprintf("%s has the values %q, and the product the dimensions %q", name, values, p.Dimensions))
	}
	p.names = append(p.names, name)
	p.rows = append(p.rows, values)
	p.tests = append(p.tests, test)
	p.always = append(p.always, always)
}

// Run runs the tests that a run of this kind has.
func (p *Tests) Run(t *testing.T) {
	t.Helper()
	chosen := p.ofRun(t.Name())
	for i, name := range p.names {
		if chosen[i] {
			t.Run(name, func(t *testing.T) {
				alone.Report(t, p.describe(i))
				p.tests[i](t)
			})
		}
	}
}

// ofRun returns which tests this run of a test has.
func (p *Tests) ofRun(name string) []bool {
	switch strength() {
	case 0:
		return Cover(p.rows, p.always, 0)
	case 1:
		return p.short(name)
	}
	if p.Singly {
		return Cover(p.rows, p.always, 1)
	}
	return Cover(p.rows, p.always, 2)
}

// short returns the tests of a short run: those of Always, and one of those that have each value, another for
// tests of other names.
func (p *Tests) short(name string) []bool {
	chosen := Cover(p.rows, p.always, 1)
	var free []int
	for i, yes := range chosen {
		if yes && !p.always[i] {
			free = append(free, i)
			chosen[i] = false
		}
	}
	for _, i := range spread(name, free, 1) {
		chosen[i] = true
	}
	return chosen
}

// describe names the values of a test that are not empty.
func (p *Tests) describe(i int) string {
	var all []string
	for d, value := range p.rows[i] {
		if value != "" {
			all = append(all, p.Dimensions[d]+"="+value)
		}
	}
	return strings.Join(all, ", ")
}

// Choose chooses rows, whose first columns are the values, for a test that works on many
// in a loop.
func (p *Tests) Choose(t *testing.T, rows [][]string) [][]string {
	t.Helper()
	for _, row := range rows {
		p.Add("", row[:len(p.Dimensions)], nil)
	}
	var chosen [][]string
	for i, yes := range p.ofRun(t.Name()) {
		if yes {
			chosen = append(chosen, rows[i])
		}
	}
	return chosen
}

// tuple is some values of a row, one or two: those of dimensions a and b, which are the
// same where it is one.
type tuple struct {
	a, b   int
	va, vb string
}

// tuples returns the tuples of a row.
func tuples(row []string, strength int) []tuple {
	var all []tuple
	for a, va := range row {
		if strength == 1 || len(row) == 1 {
			all = append(all, tuple{a, a, va, va})
			continue
		}
		for b := a + 1; b < len(row); b++ {
			all = append(all, tuple{a, b, va, row[b]})
		}
	}
	return all
}

// Cover chooses rows so that each value (strength 1), or each pair of values of two
// dimensions (strength 2), that occurs in any row occurs in a chosen one. Rows of kept
// are chosen in any case, all are for strength 0. The choice depends on the rows alone.
//
// It takes the row with most that is new until nothing is, and gives up rows that have
// become superfluous. That is at most a few times what the smallest array has.
func Cover(rows [][]string, kept []bool, strength int) []bool {
	chosen := slices.Clone(kept)
	if strength == 0 {
		for i := range chosen {
			chosen[i] = true
		}
		return chosen
	}
	missing := map[tuple]bool{}
	for _, row := range rows {
		for _, t := range tuples(row, strength) {
			missing[t] = true
		}
	}
	cover := func(i int) {
		chosen[i] = true
		for _, t := range tuples(rows[i], strength) {
			delete(missing, t)
		}
	}
	for i, keep := range kept {
		if keep {
			cover(i)
		}
	}
	for len(missing) > 0 {
		best, most := 0, 0
		for i, row := range rows {
			if chosen[i] {
				continue
			}
			news := 0
			for _, t := range tuples(row, strength) {
				if missing[t] {
					news++
				}
			}
			if news > most {
				best, most = i, news
			}
		}
		cover(best)
	}
	prune(rows, kept, chosen, strength)
	return chosen
}

// prune gives up chosen rows that have nothing which the others have not: the first rows
// that Cover takes may be these.
func prune(rows [][]string, kept, chosen []bool, strength int) {
	times := map[tuple]int{}
	for i, row := range rows {
		if chosen[i] {
			for _, t := range tuples(row, strength) {
				times[t]++
			}
		}
	}
	for i, row := range rows {
		all := tuples(row, strength)
		if chosen[i] && !kept[i] && !slices.ContainsFunc(all, func(t tuple) bool { return times[t] == 1 }) {
			chosen[i] = false
			for _, t := range all {
				times[t]--
			}
		}
	}
}

// Some chooses from a list for a test that is about something else: n of it, others for
// other names, so that a package with many tests meets all of them. The whole product
// has all, and a short run has one.
func Some[T any](name string, list []T, n int) []T {
	switch strength() {
	case 0:
		return list
	case 1:
		n = 1
	}
	return spread(name, list, n)
}

// spread chooses n of a list, at even distances. Where it begins depends on the name.
func spread[T any](name string, list []T, n int) []T {
	if n >= len(list) {
		return list
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	start := int(h.Sum32() % uint32(len(list)))
	chosen := make([]T, 0, n)
	for i := range n {
		chosen = append(chosen, list[(start+i*len(list)/n)%len(list)])
	}
	return chosen
}

// Few returns a list, and in a short run one of it, others for other names.
func Few[T any](name string, list []T) []T { return Some(name, list, len(list)) }

package product

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/alone"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
)

// Table is the file, below a package's directory, that says what the covering arrays of
// its tests cover. Each line is a product's; the columns, which tabs divide, are Columns.
//
// Tests compare their line and fail if it is another. With SDTCONVERT_PRODUCTS=write they
// write it and run nothing; scripts/test-products does that for all packages. A product
// that the first suite has no compilers for has no line.
const Table = "testdata/products.tsv"

// Columns are the names of the columns of a table.
var Columns = []string{
	"test", "dimensions and their values", "tests", "in a usual run", "in a short run", "in every run",
	"pairs that occur", "pairs in a usual run", "triples that occur", "triples in a usual run",
}

// Write reports whether tables are to be written.
func Write() bool { return os.Getenv("SDTCONVERT_PRODUCTS") == "write" }

var tables struct {
	sync.Mutex
	runs map[string]int // products of each test that runs
}

// directory is the package's, in which its tests begin.
var directory, _ = os.Getwd()

// compare compares what a product covers with its line of the table, or writes that. usual
// and short are the tests that those runs have. Other
// suites than the first have other compilers, which the table is not of.
func (p *Tests) compare(t *testing.T, usual, short []bool) {
	t.Helper()
	if len(p.rows) == 0 || toolchains.Debian != toolchains.Suites[0] {
		return
	}
	line := p.line(t, count(t), usual, short)
	path := filepath.Join(directory, Table)
	tables.Lock()
	defer tables.Unlock()
	lines, err := Lines(path)
	if err != nil && !(Write() && os.IsNotExist(err)) {
		t.Fatalf("%v; write it: SDTCONVERT_PRODUCTS=write %s", err, alone.Command(t.Name(), false))
	}
	i := slices.IndexFunc(lines, func(l []string) bool { return l[0] == line[0] })
	switch {
	case Write():
		expect.OK(t, writeTable(path, lines, i, line))
	case i < 0:
		t.Errorf("%s has no line of %s; write it: SDTCONVERT_PRODUCTS=write %s", Table, line[0], alone.Command(t.Name(), false))
	case !slices.Equal(lines[i], line):
		t.Errorf("%s: got  %s\nwant %s\nif that is right: SDTCONVERT_PRODUCTS=write %s", Table, strings.Join(line, " | "), strings.Join(lines[i], " | "), alone.Command(t.Name(), false))
	}
}

// count returns a name for a product of a test: the test's, with a number from its second
// product on.
func count(t *testing.T) string {
	tables.Lock()
	defer tables.Unlock()
	if tables.runs == nil {
		tables.runs = map[string]int{}
	}
	name := t.Name()
	tables.runs[name]++
	if n := tables.runs[name]; n > 1 {
		return fmt.Sprintf("%s (%d)", name, n)
	}
	t.Cleanup(func() {
		tables.Lock()
		defer tables.Unlock()
		delete(tables.runs, name)
	})
	return name
}

// Lines returns the lines of a table, each divided into its columns.
func Lines(path string) ([][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != len(Columns) {
			return nil, fmt.Errorf("%s: %q has %d columns, not %d", path, line, len(columns), len(Columns))
		}
		lines = append(lines, columns)
	}
	return lines, nil
}

func writeTable(path string, lines [][]string, i int, line []string) error {
	if i < 0 {
		lines = append(lines, line)
	} else {
		lines[i] = line
	}
	slices.SortFunc(lines, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	text := "# Made by scripts/test-products: what the covering arrays of this package's tests cover.\n# " + strings.Join(Columns, "\t") + "\n"
	for _, line := range lines {
		text += strings.Join(line, "\t") + "\n"
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o666)
}

// line makes the line of a product. It fails the test if a pair that occurs is in no test
// of a usual run, or a value if that has to have no more.
func (p *Tests) line(t *testing.T, name string, usual, short []bool) []string {
	t.Helper()
	var all, some [][]string
	every := 0
	for i, row := range p.rows {
		if p.in[i] != inWhole {
			all = append(all, row)
		}
		if p.in[i] == inEvery {
			every++
		}
		if usual[i] {
			some = append(some, row)
		}
	}
	strength := 2
	if p.Singly || len(p.Dimensions) == 1 {
		strength = 1
	}
	covered := meetings(some, strength)
	for meeting := range meetings(all, strength) {
		if !covered[meeting] {
			t.Errorf("no test of a usual run has %s", meeting)
		}
	}
	line := []string{name, p.sizes()}
	for _, n := range []int{
		len(p.rows), len(some), number(short), every,
		len(meetings(all, 2)), len(meetings(some, 2)), len(meetings(all, 3)), len(meetings(some, 3)),
	} {
		line = append(line, fmt.Sprint(n))
	}
	return line
}

// sizes returns how many values each dimension has.
func (p *Tests) sizes() string {
	var all []string
	for i, dimension := range p.Dimensions {
		values := map[string]bool{}
		for _, row := range p.rows {
			values[row[i]] = true
		}
		all = append(all, fmt.Sprintf("%s:%d", dimension, len(values)))
	}
	return strings.Join(all, ", ")
}

func number(chosen []bool) (n int) {
	for _, yes := range chosen {
		if yes {
			n++
		}
	}
	return n
}

// meetings returns each combination of the values of n dimensions that a row has. It counts
// what Cover has to cover, and shares nothing with it.
func meetings(rows [][]string, n int) map[string]bool {
	met := map[string]bool{}
	for _, row := range rows {
		meet(met, row, n, "")
	}
	return met
}

// meet adds the combinations of n values of the last dimensions of a row to what was chosen
// of those before.
func meet(met map[string]bool, row []string, n int, before string) {
	if n == 0 {
		met[before] = true
		return
	}
	for i := range len(row) - n + 1 {
		meet(met, row[i+1:], n-1, before+fmt.Sprintf("[%d before the last: %s]", len(row)-i-1, row[i]))
	}
}

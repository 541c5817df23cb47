package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/tools"
)

// productTables returns the tables of all packages, by the directory of a package.
func productTables(t *testing.T) map[string][][]string {
	t.Helper()
	all := map[string][][]string{}
	for directory := range tested(t) {
		lines, err := product.Lines(tools.Root(directory, product.Table))
		if os.IsNotExist(err) {
			continue
		}
		expect.OK(t, err)
		all[directory] = lines
	}
	return all
}

// TestProductsAreSummedUp compares the table of products in README.md with those of the
// packages, or writes it.
func TestProductsAreSummedUp(t *testing.T) {
	const begin, end = "<!-- made by scripts/test-products -->\n", "<!-- end of what scripts/test-products has made -->\n"
	path := tools.Root("internal", "e2e", "README.md")
	text := disk.Read(t, path)
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no lines %q and %q", path, begin, end)
	}
	want := before + begin + "\n" + sumUp(t, productTables(t)) + "\n" + end + after
	if product.Write() {
		disk.Write(t, path, want)
	} else if want != string(text) {
		t.Errorf("%s is not what the tables of products say; run scripts/test-products", path)
	}
}

// sumUp returns a table of Markdown with a line for each package, and one of all.
func sumUp(t *testing.T, tables map[string][][]string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| package | products | tests | in a usual run | in a short run | pairs: occur | covered | triples: occur | covered |\n|---|---|---|---|---|---|---|---|---|\n")
	var directories []string
	for directory := range tables {
		directories = append(directories, directory)
	}
	slices.Sort(directories)
	total := make([]int, len(product.Columns))
	products := 0
	for _, directory := range directories {
		sum := make([]int, len(product.Columns))
		for _, line := range tables[directory] {
			for i := 2; i < len(line); i++ {
				n := expect.Value(strconv.Atoi(line[i]))(t)
				sum[i] += n
				total[i] += n
			}
		}
		products += len(tables[directory])
		b.WriteString(summary("`./"+directory+"`", len(tables[directory]), sum))
	}
	b.WriteString(summary("all", products, total))
	return b.String()
}

func summary(name string, products int, sum []int) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", name, products, sum[2], sum[3], sum[4], sum[6], sum[7], sum[8], sum[9])
}

// TestProductsAreOfTests: the test of each line of a table is there.
func TestProductsAreOfTests(t *testing.T) {
	for directory, lines := range productTables(t) {
		files := expect.Value(filepath.Glob(tools.Root(directory, "*_test.go")))(t)
		var source strings.Builder
		for _, file := range files {
			source.Write(disk.Read(t, file))
		}
		for _, line := range lines {
			name := regexp.MustCompile(`^\w+`).FindString(line[0])
			if !strings.Contains(source.String(), "\nfunc "+name+"(") {
				t.Errorf("%s: no test has the name of the line %s; run scripts/test-products", directory, line[0])
			}
		}
	}
}

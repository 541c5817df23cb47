package links

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// manyCount returns how many objects there are, as many as of a kernel in a whole run.
// Every tenth has probes.
func manyCount() int {
	if product.All() {
		return 2000
	}
	return 400
}

const pieceCount = 20

// TestManyObjects merges many objects to one by `ld -r` and converts that, or
// pieces of it on the way, or the objects. A link of each has the same sites.
func TestManyObjects(t *testing.T) {
	tools.Need(t, "gcc", "readelf")
	objects := manyObjects(t)
	calls := strings.Count(tools.Output(t, "readelf", append([]string{"-rW"}, objects...)...), " __dtrace_")
	stubs := filepath.Join(t.TempDir(), "stubs.o")
	tools.Must(t, converter, "stubs", "-o", stubs, "@"+argumentFile(t, objects))
	for _, ld := range amd64.linkers {
		t.Run(ld.Name, func(t *testing.T) {
			t.Parallel()
			tools.Need(t, ld.Path)
			var want []string
			for i, inputs := range [][]string{
				convertMany(t, mergeMany(t, ld, 1, objects)),
				mergeMany(t, ld, 1, convertMany(t, mergeMany(t, ld, pieceCount, objects))),
				mergeMany(t, ld, 1, convertMany(t, objects)),
			} {
				exe := filepath.Join(t.TempDir(), "exe")
				tools.Must(t, ld.Path, append(inputs, stubs, "-e", "u0000_run", "-o", exe)...)
				got := manySites(t, exe)
				if i == 0 {
					want = got
				}
				if diff := cmp.Diff(want, got); diff != "" || len(got) != calls || calls < len(objects)/2 {
					t.Errorf("way %d: %d calls, sites of the first way (-) and %d of this (+): %s", i, calls, len(got), diff)
				}
			}
		})
	}
}

// manyObjects compiles two sources to assembly, and assembles them under many names.
// Without debug information, as `mold -r` (1.10) mixes up its strings.
func manyObjects(t *testing.T) []string {
	t.Helper()
	directory := t.TempDir()
	text := map[bool]string{}
	for probed, name := range map[bool]string{true: "probed", false: "plain"} {
		text[probed] = tools.Output(t, "gcc", "-O2", "-fno-pie", "-DUNIT=u0000", "-S", "-o", "-", "testdata/many/"+name+".c")
	}
	var sources, objects []string
	for i := range manyCount() {
		path := filepath.Join(directory, fmt.Sprintf("%04d.s", i))
		unit := strings.ReplaceAll(text[i%10 == 0], "u0000", fmt.Sprintf("u%04d", i))
		disk.Write(t, path, unit)
		sources = append(sources, path)
		objects = append(objects, strings.TrimSuffix(path, "s")+"o")
	}
	tools.Command{Directory: directory}.Must(t, "gcc", append([]string{"-c"}, sources...)...)
	return objects
}

// mergeMany merges objects to some.
func mergeMany(t *testing.T, ld toolchains.Linker, count int, objects []string) []string {
	t.Helper()
	directory := t.TempDir()
	var merged []string
	for piece := range slices.Chunk(objects, len(objects)/count) {
		out := filepath.Join(directory, fmt.Sprint(len(merged), ".o"))
		tools.Must(t, ld.Path, append([]string{"-r", "-o", out}, piece...)...)
		merged = append(merged, out)
	}
	return merged
}

// convertMany converts objects at once to others.
func convertMany(t *testing.T, objects []string) []string {
	t.Helper()
	directory := t.TempDir()
	tools.Must(t, converter, "--layout=pairs", "--output-dir", directory, "@"+argumentFile(t, objects))
	var converted []string
	for _, o := range objects {
		converted = append(converted, filepath.Join(directory, filepath.Base(o)))
	}
	return converted
}

func argumentFile(t *testing.T, arguments []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "arguments")
	disk.Write(t, path, strings.Join(arguments, "\n")+"\n")
	return path
}

// manySites lists the sites of a program by probe, function and number, those of
// one probe in functions of one name. The listing and the records as debug/elf
// and readelf show them have to agree.
func manySites(t *testing.T, exe string) []string {
	t.Helper()
	im := openImage(t, exe)
	records := im.records(t, pairs)
	checkListing(t, im, records)
	count := map[string]int{}
	var sites []string
	for _, l := range list(t, exe) {
		name := fmt.Sprintf("%s:::%s %s in %s", l.Provider, l.Name, l.Kind, l.Function)
		count[name]++
		sites = append(sites, fmt.Sprint(name, " ", count[name]))
	}
	size := 0
	for _, line := range tools.Lines(t, "readelf", "-SW", exe) {
		if fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "[")); len(fields) > 6 &&
			(fields[1] == "sdt_instances_set" || fields[1] == "sdt_isenabled_set") {
			var n int
			expect.Value(fmt.Sscanf(fields[5], "%x", &n))(t)
			size += n
		}
	}
	if size != 16*len(records) || len(sites) != len(records) {
		t.Errorf("%s: readelf shows %d bytes of records, the listing %d sites, and there are %d records", exe, size, len(sites), len(records))
	}
	slices.Sort(sites)
	return sites
}

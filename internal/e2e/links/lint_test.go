package links

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/tools"
)

// TestLint holds eu-elflint and readelf to every object that can be converted:
// they have nothing to say that they do not say of the unconverted one, but that
// there are relocations of type NONE.
func TestLint(t *testing.T) {
	t.Parallel()
	tools.Need(t, "eu-elflint", "readelf")
	var rows [][]string
	for _, o := range objects.Paths(t) {
		for _, flags := range []string{"--layout pairs", "--layout relative", "--layout freebsd", "--stapsdt"} {
			rows = append(rows, append(objects.Recipe(t, o)[:3], flags, o))
		}
	}
	rows = product.New("source", "machine", "compiler", "options").Choose(t, rows)
	directory := t.TempDir()
	converted := 0
	for _, row := range rows {
		flags, before := row[3], row[4]
		after := filepath.Join(directory, filepath.Base(before))
		if _, err := tools.Try(converter, append(strings.Fields(flags), "-o", after, before)...); err != nil {
			continue // It is to be refused; other tests say so.
		}
		converted++
		lint(t, before, after, flags)
	}
	if converted < len(rows)/4 {
		t.Errorf("only %d of %d objects were converted", converted, len(rows))
	}
}

func lint(t *testing.T, before, after, flags string) {
	t.Helper()
	for _, tool := range [][]string{{"eu-elflint", "--gnu-ld"}, {"readelf", "-aW"}} {
		known := complaintsBefore(tool, before)
		for c := range complaints(tool, after) {
			if !known[c] && !noneRelocation.MatchString(c) && !stapsdtNote.MatchString(c) {
				t.Errorf("%s %s: %s says %q", filepath.Base(before), flags, tool[0], c)
			}
		}
	}
}

// before holds what complaintsBefore has returned, by tool and object.
var before sync.Map

// complaintsBefore is complaints of a committed object, which several tests ask for.
func complaintsBefore(tool []string, object string) map[string]bool {
	key := tool[0] + " " + object
	found, ok := before.Load(key)
	if !ok {
		found, _ = before.LoadOrStore(key, complaints(tool, object))
	}
	return found.(map[string]bool)
}

// complaints returns the lines in which a tool finds fault, without numbers: what
// is in the file before keeps its faults at other places.
func complaints(tool []string, path string) map[string]bool {
	out, _ := tools.Try(tool[0], append(tool[1:len(tool):len(tool)], path)...)
	found := map[string]bool{}
	for _, line := range strings.Split(out, "\n") {
		if tool[0] == "readelf" && !findsFault(line) {
			continue
		}
		line = strings.ReplaceAll(line, path, "FILE")
		if line = strings.TrimSpace(numbers.ReplaceAllString(line, "#")); line != "" {
			line = unknownSection.ReplaceAllString(line, "section $1 is of an unknown type")
			found[unknownRelocation.ReplaceAllString(line, "relocations are of unknown types")] = true
		}
	}
	return found
}

// findsFault reports whether readelf finds fault in a line. Outputs of many megabytes are too
// long for a regular expression.
func findsFault(line string) bool {
	for _, mark := range []string{"<corrupt", "<unknown", "arning:", "rror:"} {
		if strings.Contains(line, mark) {
			return true
		}
	}
	return strings.HasPrefix(line, "readelf: ")
}

var (
	numbers = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)
	// A row of readelf's table, of a section of a type that it does not know, as binutils
	// 2.40 does not know SHT_CREL. The rest of the row are places and sizes.
	unknownSection = regexp.MustCompile(`^\[ *#\] (\S+) +#: <unknown> .*`)
	// What elflint 0.188 says of all relocations of LoongArch.
	unknownRelocation = regexp.MustCompile(`^section \[ *#\] '[^']+': relocation #: invalid type$`)
	// What elflint says of a relocation of type 0, whatever it is called.
	noneRelocation = regexp.MustCompile(`^section \[ *#\] '\.rela?\..*': relocation #: relocation type invalid for the file type$`)
	// What elflint says of the notes of any object: it knows them in linked files.
	stapsdtNote = regexp.MustCompile(`unknown object file note type # with owner name 'stapsdt'`)
)

// TestLintAccepted keeps the exception of TestLint honest: with the relocations
// dropped there is nothing to except.
func TestLintAccepted(t *testing.T) {
	tools.Need(t, "eu-elflint", "readelf")
	o := filepath.Join(sources, "calls.amd64-gcc12-O2.o")
	out := convert(t, o, "--drop-relocations")
	for _, tool := range [][]string{{"eu-elflint", "--gnu-ld"}, {"readelf", "-aW"}} {
		known := complaints(tool, o)
		for c := range complaints(tool, out) {
			if !known[c] {
				t.Errorf("%s says %q", tool[0], c)
			}
		}
	}
	expect.Value(os.Stat(out))(t)
}

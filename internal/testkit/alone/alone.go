// Package alone makes a test that fails log the command that runs it alone.
package alone

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

var state struct {
	sync.Mutex
	values map[string]string   // of the tests of products that have begun, by name
	asked  map[testing.TB]bool // tests that Report was called for
	failed map[string]bool     // tests that have logged their command, by name
}

func init() {
	state.values, state.asked, state.failed = map[string]string{}, map[testing.TB]bool{}, map[string]bool{}
}

// Report makes t log how to run it alone, if it fails and none of its subtests has logged
// that.
func Report(t testing.TB) {
	state.Lock()
	defer state.Unlock()
	if state.asked[t] {
		return
	}
	state.asked[t] = true
	t.Cleanup(func() {
		log := !subtestFailed(t)
		state.Lock()
		defer state.Unlock()
		delete(state.asked, t)
		if !t.Failed() {
			return
		}
		state.failed[t.Name()] = true
		if !log {
			return
		}
		values, whole := valuesOf(t.Name())
		if values != "" {
			t.Logf("with %s", values)
		}
		t.Logf("run it alone: %s", Command(t.Name(), whole))
	})
}

// ReportProduct is Report for a test of a product. values says which machine, compiler,
// linker and so on it is of; the log of t and of its subtests names them.
func ReportProduct(t testing.TB, values string) {
	remember(t, values)
	Report(t)
}

// InProduct makes t and its subtests log a command that runs whole products.
func InProduct(t testing.TB) { remember(t, "") }

func remember(t testing.TB, values string) {
	state.Lock()
	defer state.Unlock()
	state.values[t.Name()] = values
}

// subtestFailed reports whether a subtest has logged its command, and forgets those
// subtests.
func subtestFailed(t testing.TB) bool {
	state.Lock()
	defer state.Unlock()
	found := false
	for name := range state.failed {
		if strings.HasPrefix(name, t.Name()+"/") {
			delete(state.failed, name)
			found = true
		}
	}
	return found
}

// valuesOf returns what is known of the test of a product that has a name, or that a
// subtest of that name is in, and whether there is one.
func valuesOf(name string) (values string, inProduct bool) {
	for {
		if values, ok := state.values[name]; ok {
			return values, true
		}
		slash := strings.LastIndexByte(name, '/')
		if slash < 0 {
			return "", false
		}
		name = name[:slash]
	}
}

// Command returns a command for a shell, in any directory of the project, that runs a test
// of the package under test alone, with what this run was told by its environment. In
// another suite of Debian (SDTCONVERT_SUITE) the command is for the project's directory.
// whole asks for a run of whole products, without which a test may not exist.
func Command(test string, whole bool) string {
	whole = whole || os.Getenv("SDTCONVERT_TESTS") == "all"
	path, race := built()
	var words []string
	for _, name := range []string{"CI", "SDTCONVERT_ATTACK"} {
		value := os.Getenv(name)
		if value != "" && (name != "CI" || os.Getenv("SDTCONVERT_SUITE") == "") { // which sets it
			words = append(words, name+"="+quote(value))
		}
	}
	switch suite := os.Getenv("SDTCONVERT_SUITE"); {
	case suite != "" && whole:
		words = append(words, "scripts/test", "--all", "--suite", quote(suite))
	case suite != "":
		words = append(words, "scripts/test", "--suite", quote(suite))
	case whole:
		words = append(words, "SDTCONVERT_TESTS=all", "go", "test")
	default:
		words = append(words, "go", "test")
	}
	if race {
		words = append(words, "-race")
	}
	words = append(words, quote(path))
	if strings.HasPrefix(test, "Benchmark") {
		return strings.Join(append(words, "-run", "'^$'", "-bench", quote(Pattern(test))), " ")
	}
	return strings.Join(append(words, "-run", quote(Pattern(test))), " ")
}

// built returns the import path of the package under test, and whether it was built with
// the race detector.
func built() (path string, race bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ".", false
	}
	for _, s := range info.Settings {
		race = race || s.Key == "-race" && s.Value == "true"
	}
	return strings.TrimSuffix(info.Path, ".test"), race
}

// Pattern returns what -run takes for one test, by the name that it has in the output.
func Pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

var plain = regexp.MustCompile(`^[-+=./:,@%\w]+$`)

// quote returns a word as a shell reads it.
func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// shop is the program of the recipes in docs/check.md.
const shop = `#include <sdt.h>

SDT_PROVIDER_DEFINE(shop);
SDT_PROBE_DEFINE2(shop, , , placed, "int", "char *");
SDT_PROBE_DEFINE1(shop, , , sent, "int");

static __attribute__((noinline)) void order(int i, char *what)
{
	if (SDT_PROBE_ENABLED(shop, , , placed))
		SDT_PROBE2(shop, , , placed, i, what);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		order(i, argv[i]);
		SDT_PROBE1(shop, , , sent, i);
	}
}
`

// recipe is what docs/check.md has of one, which is installed elsewhere here.
type recipe struct {
	*testing.T
	directory, page string
}

// block returns the fenced block behind a line of the page.
func (r *recipe) block(line, kind string) string {
	r.Helper()
	_, text, ok := strings.Cut(r.page, line)
	_, text, found := strings.Cut(text, "\n```"+kind+"\n")
	text, _, closed := strings.Cut(text, "\n```\n")
	if !ok || !found || !closed {
		r.Fatalf("docs/check.md has no block of %q behind %q", kind, line)
	}
	return text + "\n"
}

// steps returns the commands of a service's block, those of them that are for a shell.
func steps(yaml, before string) (all []string) {
	for _, line := range strings.Split(yaml, "\n") {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), before); ok {
			all = append(all, command)
		}
	}
	return all
}

func (r *recipe) write(name, text string) {
	r.Helper()
	disk.Write(r, filepath.Join(r.directory, name), text)
}

// sh runs a command as a service does.
func (r *recipe) sh(command string) (string, error) {
	r.Helper()
	c := tools.Command{Directory: r.directory, Env: []string{
		"PATH=" + filepath.Join(r.directory, "bin") + ":" + os.Getenv("PATH"), "CPATH=" + include, "LC_ALL=C",
	}}
	return c.Try("sh", "-ec", command)
}

// passes runs the steps, of which only the last may fail, and then has to say why.
func (r *recipe) passes(steps []string, why ...string) {
	r.Helper()
	for i, step := range steps {
		out, err := r.sh(step)
		last := i == len(steps)-1
		if (err != nil) != (last && len(why) > 0) {
			r.Fatalf("%s: %v\n%s", step, err, out)
		}
		for _, text := range why {
			if last && !strings.Contains(out, text) {
				r.Errorf("%s does not say %q:\n%s", step, text, out)
			}
		}
	}
}

// The recipes pass for a program, and fail when a probe is gone, has another name or another
// number of arguments, or its note is lost.
func TestRecipes(t *testing.T) {
	tools.Need(t, "cmake", "make", "cc")
	r := &recipe{t, t.TempDir(), string(disk.Read(t, tools.Root("docs", "check.md")))}
	for _, name := range []string{"bin/sdtconvert", "libexec/ld"} {
		path := filepath.Join(r.directory, name)
		expect.OK(t, os.Mkdir(filepath.Dir(path), 0o777))
		expect.OK(t, os.Symlink(converter, path))
	}
	project := strings.ReplaceAll(r.block("### With CMake", "cmake"), "/usr/libexec/sdtconvert", filepath.Join(r.directory, "libexec"))
	r.write("CMakeLists.txt", project)
	r.write("probes.txt", r.block("`probes.txt`:", ""))
	gitHub, gitLab := steps(r.block("### With GitHub", "yaml"), "- run: "), steps(r.block("### With GitLab", "yaml"), "- ")
	if len(gitHub) != 4 || len(gitLab) != 4 {
		t.Fatalf("%q\n%q", gitHub, gitLab)
	}
	test := "ctest --test-dir build --output-on-failure"
	for _, c := range []struct{ old, new, gitHub, text string }{
		{"", "", "", ""},
		{"\t\tSDT_PROBE1(shop, , , sent, i);\n", "", "::error file=probes.txt,line=3,title=missing-probe::", "probes.txt:3: shop:::sent: no site has this probe, which is required [missing-probe]"},
		{"ENABLED(shop, , , placed)", "ENABLED(shop, , , placde)", "::error file=orders.c,line=9,title=dead-guard::", "a guard reads shop_placde_semaphore, which no note names"},
		{"SDT_PROBE1(shop, , , sent, i)", "SDT_PROBE2(shop, , , sent, i, 1)", "::error file=orders.c,line=17,title=argument-mismatch::", "a call has 2 arguments"},
	} {
		source := strings.Replace(shop, c.old, c.new, 1)
		if c.old != "" && source == shop {
			t.Fatalf("no %q", c.old)
		}
		r.write("orders.c", source)
		if c.old == "" {
			r.passes(gitHub)
			r.passes(append(gitLab[:len(gitLab):len(gitLab)], test))
			continue
		}
		r.passes(gitHub, c.gitHub)
		r.passes(gitLab[len(gitLab)-1:], c.text)
		r.passes([]string{test}, "probes ...........................***Failed")
	}
	// Without notes.
	r.write("orders.c", shop)
	r.write("CMakeLists.txt", project+"set_property(TARGET shop PROPERTY RULE_LAUNCH_LINK \"env SDTCONVERT_FLAGS=--no-stapsdt\")\n")
	r.passes(gitHub, "title=missing-note::", "link again with notes (--stapsdt beside a --layout)", "title=dead-guard::")
}

package documents

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/tools"
)

// TestTracers runs sessions of docs/tracers.md with the program of docs/first-steps.md.
func TestTracers(t *testing.T) {
	tools.Need(t, "cc", "gcc", "readelf")
	source := blockWith(t, "docs/first-steps.md", "/* count.c */")
	p := newProject(t, filepath.Dir(converter), map[string]string{"count.c": source, "README.md": "a\nbcd\n"})
	p.must("cc -O2 -B" + linkers + " -o count count.c")
	p.session(blockWith(t, "docs/tracers.md", "$ readelf -n count"))
	t.Run("gdb", func(t *testing.T) {
		tools.Need(t, "gdb")
		var script string
		for _, m := range regexp.MustCompile(`(?m)^\(gdb\) (.*)$`).FindAllStringSubmatch(blockWith(t, "docs/tracers.md", "(gdb)"), -1) {
			script += m[1] + "\n"
		}
		disk.Write(t, filepath.Join(p.directory, "script"), script)
		p.prints(t, "gdb -nx -batch -x script ./count", "count    end__of__line 0x0\nBreakpoint 1 at \nBreakpoint 1, \n$1 = 1\n")
	})
	t.Run("bpftrace", func(t *testing.T) {
		tools.NeedUprobes(t)
		lines := strings.Split(blockWith(t, "docs/tracers.md", "# bpftrace -l"), "\n# ")
		p.prints(t, strings.TrimPrefix(lines[0], "# "), "usdt:./count:count:end__of__line")
		p.prints(t, strings.TrimSpace(lines[1]), "2 lines\n@width:\n[0, 10) 2 |@")
	})
}

//go:build unix

package ld

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/expect"
)

func TestRealLinker(t *testing.T) {
	t.Chdir(t.TempDir())
	own := expect.Value(os.Executable())(t)
	for _, name := range []string{"bin/ld", "bin/ld.lld", "gcc/ld", "bin/plain"} {
		expect.OK(t, os.MkdirAll(filepath.Dir(name), 0o777))
		expect.OK(t, os.WriteFile(name, nil, 0o777))
	}
	expect.OK(t, os.Mkdir("wrap", 0o777))
	expect.OK(t, os.Symlink(own, "wrap/ld"))
	for _, test := range []struct {
		flag, name, environ string
		want, err           string
	}{
		{name: "ld", environ: "PATH=wrap:bin", want: "./bin/ld"},
		{name: "ld", environ: "PATH=wrap:bin COMPILER_PATH=nothing:wrap:gcc", want: "./gcc/ld"},
		{name: "ld", environ: "PATH=wrap:bin COMPILER_PATH=gcc SDTCONVERT_LD=ld.lld", want: "./bin/ld.lld"},
		{flag: "plain", name: "ld", environ: "PATH=bin SDTCONVERT_LD=ld.lld", want: "./bin/plain"},
		{flag: "bin/plain", name: "ld", want: "bin/plain"},
		{name: "ld", environ: "PATH=wrap", err: "ld: no linker of this name along PATH but this program"},
		{name: "ld", environ: "PATH=bin SDTCONVERT_LD=none", err: "SDTCONVERT_LD: no none along PATH"},
		{flag: "bin/none", name: "ld", environ: "PATH=bin", err: "--linker: "},
		{name: "ld", environ: "PATH=bin SDTCONVERT_DEPTH=7", want: "./bin/ld"},
		{name: "ld", environ: "PATH=bin SDTCONVERT_DEPTH=8", err: "ld: leads to sdtconvert itself"},
	} {
		p := &process.Process{Environ: strings.Fields(test.environ)}
		got, err := findReal(p, test.flag, test.name)
		what := strings.Join([]string{test.flag, test.name, test.environ}, " ")
		if (err != nil) != (test.err != "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", what, err, test.err)
		}
		if err == nil && got.path != test.want {
			t.Errorf("%s: %s, want %s", what, got.path, test.want)
		}
		depth := "SDTCONVERT_DEPTH=1"
		if strings.Contains(test.environ, "DEPTH=7") {
			depth = "SDTCONVERT_DEPTH=8"
		}
		if err == nil && !slices.Contains(got.environ, depth) {
			t.Errorf("%s: the linker's environment is %q", what, got.environ)
		}
	}
}

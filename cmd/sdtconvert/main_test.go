package main

import (
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/expect"
)

var update = flag.Bool("update", false, "write what the program does now into the golden files")

// TestMain lets the scripts run this test binary as sdtconvert.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sdtconvert": main, "sdtconvert-cc": main})
}

// runWith runs the program in this process.
func runWith(stdout, stderr io.Writer, args ...string) int {
	return newProgram(&process.Process{Stdout: stdout, Stderr: stderr, Environ: os.Environ()}).run("sdtconvert", args)
}

// TestScripts runs the scripts of testdata/script, in which $OBJS is the
// directory of the committed objects. With -update the files that they compare
// with are rewritten.
func TestScripts(t *testing.T) {
	if scripts, err := filepath.Glob("testdata/script/*.txtar"); err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	objs := expect.Value(filepath.Abs("../../testdata/objs"))(t)
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("OBJS", objs)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "stamp": stamp, "stamped": stamped, "mode": mode, "poke": poke, "append": appendTo,
		},
	})
}

// exits STATUS COMMAND ARG... runs a command that must exit with a status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARG...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// oldTime is when a stamped file was changed.
var oldTime = time.Unix(1_000_000_000, 0)

// stamp FILE remembers which file it is and when it was changed.
func stamp(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		ts.Check(os.Chtimes(ts.MkAbs(name), oldTime, oldTime))
		ts.Check(os.Link(ts.MkAbs(name), ts.MkAbs(name+".stamp")))
	}
}

// stamped FILE checks that it is still the file that was stamped, untouched.
func stamped(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		now, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		was, err := os.Stat(ts.MkAbs(name + ".stamp"))
		ts.Check(err)
		same := os.SameFile(now, was) && now.ModTime().Equal(oldTime)
		if same == neg {
			ts.Fatalf("%s is the untouched file: %v", name, same)
		}
	}
}

// mode FILE PERM checks a file's permissions.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Lstat(ts.MkAbs(args[0]))
	ts.Check(err)
	want, err := strconv.ParseUint(args[1], 8, 32)
	ts.Check(err)
	if got := info.Mode(); (got.Perm() == fs.FileMode(want) && got.IsRegular()) == neg {
		ts.Fatalf("%s has mode %v", args[0], got)
	}
}

// poke FILE OFFSET HEX overwrites bytes of a file.
func poke(ts *testscript.TestScript, neg bool, args []string) {
	data := []byte(ts.ReadFile(args[0]))
	off, err := strconv.ParseInt(args[1], 0, 64)
	ts.Check(err)
	b, err := hex.DecodeString(args[2])
	ts.Check(err)
	copy(data[off:], b)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o666))
}

// append FILE TEXT appends to a file, with Go's escapes in the text.
func appendTo(ts *testscript.TestScript, neg bool, args []string) {
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	data := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data+text), 0o666))
}

func TestLinkerName(t *testing.T) {
	for program, want := range map[string]string{
		"ld": "ld", "/opt/wrap/ld": "ld", "./ld.lld-20": "ld.lld-20", "ld.exe": "ld", "mold": "mold",
		"x86_64-linux-gnu-ld": "x86_64-linux-gnu-ld", "/x/aarch64-linux-gnu-ld.bfd": "aarch64-linux-gnu-ld.bfd",
		"sdtconvert": "", "/usr/bin/sdtconvert": "", "sdtconvert-ld": "", "sdtconvert.test": "", "ldd": "", "x-ldap": "", "build": "", "": "",
	} {
		name := programName(program)
		if ok := isLinkerName(name); ok != (want != "") || ok && name != want {
			t.Errorf("%s: %q, %v", program, name, ok)
		}
	}
}

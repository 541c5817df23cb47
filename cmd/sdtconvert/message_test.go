package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/message"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// Whatever names are in an error, it is one line, and no command for a terminal.
func TestErrorsAreLines(t *testing.T) {
	var out bytes.Buffer
	message.Error(&out, errors.Join(errors.New("a\n::error::b"), errors.New("c\x1b[31m\r\u0085"), errors.New("ü\xff\t'\\")))
	expect.Equal(t, "sdtconvert: a\\n::error::b\nsdtconvert: c\\x1b[31m\\r\\u0085\nsdtconvert: ü\xff\\t'\\\n", out.String())
}

// Names in files change no number of lines, and are not commands for a terminal.
func TestNamesStayInTheirLines(t *testing.T) {
	plain := disk.Read(t, "../../testdata/objs/calls.amd64-gcc12-Os.o")
	const function, section = "calls_zero", ".text"
	if !bytes.Contains(plain, []byte(function+"\x00")) {
		t.Fatalf("the object has no %s", function)
	}
	hostile := bytes.ReplaceAll(plain, []byte(function), []byte("p\n\x1b[31m\rll"))
	hostile = bytes.ReplaceAll(hostile, []byte(section+"\x00"), []byte(".t\nxt\x00"))
	directory := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(directory, name)
		disk.Write(t, path, data)
		return path
	}
	output := func(object string, args ...string) string {
		var out, stderr bytes.Buffer
		if status := runWith(&out, &stderr, append(args, object)...); status != exitOK {
			t.Fatalf("%v: exit status %d: %s", args, status, &stderr)
		}
		return out.String()
	}
	a, b := write("a.o", plain), write("b.o", hostile)
	for _, args := range [][]string{{"inspect"}, {"convert", "-v"}, {"convert", "-n"}, {"list", "-v"}} {
		want, got := output(a, args...), output(b, args...)
		if strings.Count(got, "\n") != strings.Count(want, "\n") || strings.ContainsAny(got, "\x1b\r") {
			t.Errorf("%v prints\n%q, where other names give\n%q", args, got, want)
		}
	}
	var out, stderr bytes.Buffer
	if status := runWith(&out, &stderr, "resolve", b, ".t\nxt+0x0"); status != exitOK || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("resolve: exit status %d: %q %q", status, &out, &stderr)
	}
}

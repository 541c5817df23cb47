package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/expect"
)

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (outer, terminal *os.File) {
	t.Helper()
	outer, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { outer.Close() })
	n := expect.Value(unix.IoctlGetInt(int(outer.Fd()), unix.TIOCGPTN))(t)
	expect.OK(t, unix.IoctlSetPointerInt(int(outer.Fd()), unix.TIOCSPTLCK, 0))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	return outer, terminal
}

// inspectOnTerminal returns what a terminal gets to see.
func inspectOnTerminal(t *testing.T, path string) string {
	t.Helper()
	outer, terminal := openTerminal(t)
	seen := make(chan string)
	go func() {
		var b bytes.Buffer
		b.ReadFrom(outer) // ends with EIO when the terminal is closed
		seen <- b.String()
	}()
	status := runWith(terminal, terminal, "inspect", path)
	terminal.Close()
	expect.Equal(t, exitOK, status, "exit status")
	return strings.ReplaceAll(<-seen, "\r\n", "\n")
}

const coloured = "../../testdata/objs/small.mips64-clang19-O2.o"

func TestInspectIsColouredOnATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	got := inspectOnTerminal(t, coloured)
	for _, want := range []string{"\x1b[1m  SITE ", "\x1b[33m  .text+0x1c "} {
		expect.Contains(t, got, want)
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "\x1b[") && !strings.HasSuffix(line, "\x1b[m\n") {
			t.Errorf("line %q leaves its colour on", line)
		}
	}
}

func TestInspectHasNoColourWithNO_COLOR(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	if got := inspectOnTerminal(t, coloured); strings.Contains(got, "\x1b") || !strings.Contains(got, "SITE") {
		t.Errorf("got %q", got)
	}
}

func TestInspectHasNoColourWithoutATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	var stdout, stderr bytes.Buffer
	if runWith(&stdout, &stderr, "inspect", coloured) != exitOK || bytes.Contains(stdout.Bytes(), []byte("\x1b")) {
		t.Errorf("got %q, %q", stdout.String(), stderr.String())
	}
}

func TestColourOfEachState(t *testing.T) {
	i := &inspector{colour: true}
	for state, want := range map[string]string{
		sites.Unconverted: "\x1b[33mx\x1b[m\n", sites.Disabled: "\x1b[32mx\x1b[m\n", sites.Refused: "\x1b[31mx\x1b[m\n", sites.Unknown: "\x1b[31mx\x1b[m\n",
	} {
		expect.Equal(t, want, i.paint(stateColour(state), "x\n"), "%s", state)
	}
}

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// own is sdtconvert, for the machine.
const own = "/sdtconvert"

// event is a line of `sdtconvert trace`: the time, the thread, the probe, and its arguments.
var event = regexp.MustCompile(`^[0-9:.]+ \d+ (\w+):[^:]*:[^:]*:(\w+)\((.*)\)$`)

// ownTracer traces the program with `sdtconvert trace`: by jumps where there can be some, and by breakpoints.
func ownTracer() {
	for _, flags := range [][]string{{"-f"}, {"-f", "--breakpoints"}} {
		count, err := traceByItself(flags)
		report(err, "sdtconvert trace %s: %d hits with their arguments", strings.Join(flags, " "), count)
	}
}

func traceByItself(flags []string) (count int, err error) {
	if _, err := os.Stat(own); err != nil {
		return 0, err
	}
	var messages strings.Builder
	cmd := exec.Command(own, append(append([]string{"trace"}, flags...), "--", program)...)
	cmd.Stdin, cmd.Stderr = strings.NewReader("\n\nf\n\n"), &messages
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, messages.String())
	}
	// Of A32, instructions with a condition cannot be traced, which is said.
	isConditional := func(hit string) bool {
		return strings.HasPrefix(hit, "call:branch ") && strings.Contains(messages.String(), "branch:branch at ")
	}
	var events, wanted, guards []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		match := event.FindStringSubmatch(line)
		switch {
		case match != nil:
			events = append(events, match[1]+":"+match[2]+decimal(match[3]))
		case word == "want" && isConditional(rest):
		case word == "want":
			wanted = append(wanted, rest)
		case word == "guard":
			guards = append(guards, rest)
		case word != "ready" && word != "done":
			return 0, fmt.Errorf("the program prints %q", line)
		}
	}
	for _, guard := range guards {
		if guard != "1" {
			err = fmt.Errorf("guards are %s", strings.Join(guards, " "))
		}
	}
	if err = errors.Join(err, same("hits", events, wanted)); err != nil {
		err = fmt.Errorf("%w; %s", err, messages.String())
	}
	return len(events), err
}

// decimal returns arguments with a space before each, as decimal numbers: unsigned words of a type that is not known may be pointers, and
// are shown as such.
func decimal(arguments string) (text string) {
	for argument := range strings.FieldsFuncSeq(arguments, func(r rune) bool { return r == ',' || r == ' ' }) {
		if n, err := strconv.ParseUint(argument, 0, 64); err == nil {
			argument = strconv.FormatUint(n, 10)
		}
		text += " " + argument
	}
	return text
}

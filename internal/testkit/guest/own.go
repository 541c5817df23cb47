//go:build linux

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// own is sdtconvert, for the machine.
const own = "/sdtconvert"

// event is a line of `sdtconvert trace`: the time, the thread, the probe, and its arguments.
var event = regexp.MustCompile(`^[0-9:.]+ \d+ (\w+):[^:]*:[^:]*:(\w+)\((.*)\)$`)

// ownTracer traces the program with `sdtconvert trace`: by jumps where there can be some, and by breakpoints.
func ownTracer() {
	for _, flags := range [][]string{{"-f"}, {"-f", "--breakpoints"}, {"-f", "--filter", "arg0 > 3 && arg1 != 2"}} {
		count, err := traceByItself(flags)
		report(err, "sdtconvert trace %s: %d hits with their arguments", strings.Join(flags, " "), count)
	}
	if m := machine(); m != elf.EM_X86_64 && m != elf.EM_AARCH64 {
		return // breakpoints without a tracer end the program there
	}
	for _, flags := range [][]string{nil, {"--breakpoints"}} {
		report(outlivesTracer(flags), "the program goes on after sdtconvert trace %s was killed, and the next puts its code back", strings.Join(flags, " "))
	}
}

// machine returns the machine of the program.
func machine() elf.Machine {
	f, err := elf.Open(program)
	if err != nil {
		return elf.EM_NONE
	}
	defer f.Close()
	return f.Machine
}

// outlivesTracer kills a tracer, and has the program run on: its guards stay true until the next tracer has ended.
func outlivesTracer(flags []string) error {
	p, err := start()
	if err != nil {
		return err
	}
	pid := strconv.Itoa(p.Process.Pid)
	tracer := exec.Command(own, append(append([]string{"trace"}, flags...), "-p", pid)...)
	tracer.Env = append(os.Environ(), "SDTCONVERT_TRACE_KEEPER=1") // without the process that keeps it
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	tracer.ExtraFiles = []*os.File{read}
	if err := tracer.Start(); err != nil {
		return err
	}
	guards := none
	for tries := 0; tries < 100 && same("guards", guards, all) != nil; tries++ {
		time.Sleep(100 * time.Millisecond)
		if _, guards, err = p.round(""); err != nil {
			return err
		}
	}
	tracer.Process.Kill()
	tracer.Wait()
	for range 3 {
		_, now, err := p.round("")
		if err := errors.Join(err, same("guards", guards, all), same("guards", now, all)); err != nil {
			return err
		}
	}
	next := exec.Command(own, "trace", "-n", "1", "-p", pid)
	var out strings.Builder
	next.Stdout, next.Stderr = &out, &out
	if err := next.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- next.Wait() }()
	for running := true; running; {
		if _, _, err := p.round(""); err != nil {
			return err
		}
		select {
		case err = <-ended:
			running = false
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err != nil || !strings.Contains(out.String(), " "+pid+" ") {
		return fmt.Errorf("%w: no event of thread %s in %s", err, pid, out.String())
	}
	_, guards, err = p.round("")
	return errors.Join(err, same("guards", guards, none), p.end())
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
		case word == "want" && (isConditional(rest) || slices.Contains(flags, "--filter") && !isSelected(rest)):
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

// isSelected reports whether the filter selects a hit.
func isSelected(hit string) bool {
	arguments := strings.Fields(hit)[1:]
	if len(arguments) < 2 || strings.HasPrefix(arguments[0], "-") {
		return false
	}
	first, err := strconv.ParseUint(arguments[0], 10, 64)
	return err == nil && first > 3 && arguments[1] != "2"
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

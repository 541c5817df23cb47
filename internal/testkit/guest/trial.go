//go:build linux

package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// trial arms all sites of the program and its library, and disarms them.
func trial() error {
	sites, machine, err := readNotes(program)
	if err != nil {
		return err
	}
	more, _, err := readNotes(library)
	if err != nil {
		return err
	}
	fmt.Printf("%d sites, %d in a library\n", len(sites)+len(more), len(more))
	sites = append(sites, more...)
	p, err := start()
	if err != nil {
		return err
	}
	before, err := p.code(sites)
	if err != nil {
		return err
	}
	_, guards, err := p.round("")
	report(errors.Join(err, same("guards", guards, none)), "untraced")
	if err := arm(machine, sites); err != nil {
		return err
	}
	armed, err := p.code(sites)
	for i := range armed {
		if err == nil && bytes.Equal(armed[i], before[i]) {
			err = fmt.Errorf("%s at %#x is as before: % x", sites[i].probe, sites[i].address, before[i])
		}
	}
	report(err, "armed: the bytes of %d sites", len(sites))
	var wanted, tests []string
	for _, line := range []string{"", "", "f", ""} {
		want, guards, err := p.round(line)
		if err != nil {
			return err
		}
		wanted, tests = append(wanted, want...), append(tests, guards...)
	}
	report(same("guards", tests, slices.Repeat(all, 4)), "guards of a process and its child")
	fresh, err := start()
	if err != nil {
		return err
	}
	want, guards, err := fresh.round("")
	report(errors.Join(err, same("guards", guards, all), fresh.end()), "a program that starts while it is traced")
	wanted = append(wanted, want...)
	hits, err := hits(sites)
	report(errors.Join(err, same("hits", hits, wanted)), "%d hits with their arguments", len(wanted))
	report(disarm(), "disarmed")
	after, err := p.code(sites)
	for i := range after {
		if err == nil && !bytes.Equal(after[i], before[i]) {
			err = fmt.Errorf("%s at %#x: % x, before % x", sites[i].probe, sites[i].address, after[i], before[i])
		}
	}
	report(err, "the bytes are back")
	_, guards, err = p.round("")
	report(errors.Join(err, same("guards", guards, none), p.end()), "untraced again")
	ownTracer()
	tracers(sites)
	return cost(machine, sites)
}

// What the guards of the program and of its library print.
var none, all = []string{"0", "0"}, []string{"1", "1"}

// cost prints how long a hit takes: of a call, and of the NOP of a macro.
func cost(machine elf.Machine, sites []site) error {
	hot := slices.DeleteFunc(slices.Clone(sites), func(s site) bool { return !strings.HasPrefix(s.probe, "hot:") })
	p, err := start()
	if err != nil {
		return err
	}
	if err := p.measure("disabled", 100000); err != nil {
		return err
	}
	if err := arm(machine, hot); err != nil {
		return err
	}
	return errors.Join(p.measure("armed", 1000), disarm(), p.end())
}

// measure prints how long a turn of loops with a probe takes.
func (p *running) measure(state string, turns int) error {
	if _, err := fmt.Fprintf(p.in, "h%d\n", turns); err != nil {
		return err
	}
	for p.out.Scan() && p.out.Text() != "done" {
		fmt.Printf("%s: %s ns for a call and for a marked NOP\n", state, strings.TrimPrefix(p.out.Text(), "took "))
	}
	return p.out.Err()
}

// running is the program under way.
type running struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start() (*running, error) {
	p := &running{Cmd: exec.Command(program)}
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		return nil, err
	}
	if !p.out.Scan() || p.out.Text() != "ready" {
		return nil, fmt.Errorf("the program prints %q", p.out.Text())
	}
	return p, nil
}

// round has the program run once, and returns what it wants tracers to see, and whether its
// guards are true.
func (p *running) round(line string) (wanted, guards []string, err error) {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return nil, nil, err
	}
	for p.out.Scan() {
		word, rest, _ := strings.Cut(p.out.Text(), " ")
		switch word {
		case "want":
			wanted = append(wanted, rest)
		case "guard":
			guards = append(guards, rest)
		case "done":
			return wanted, guards, nil
		default:
			return nil, nil, fmt.Errorf("the program prints %q", p.out.Text())
		}
	}
	return nil, nil, fmt.Errorf("the program has ended: %v", p.Wait())
}

func (p *running) end() error {
	p.in.Close()
	return p.Wait()
}

// code reads eight bytes of the process at each site.
func (p *running) code(sites []site) ([][]byte, error) {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.Process.Pid))
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	base, err := p.base(library)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, s := range sites {
		b := make([]byte, 8)
		at := int64(s.address)
		if s.file == library {
			at += base
		}
		if _, err := mem.ReadAt(b, at); err != nil {
			return nil, fmt.Errorf("%s at %#x: %w", s.probe, s.address, err)
		}
		all = append(all, b)
	}
	return all, nil
}

// base returns where a library is in the process.
func (p *running) base(path string) (int64, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, path+"\n") {
			var from int64
			_, err := fmt.Sscanf(line, "%x", &from)
			return from, err
		}
	}
	return 0, fmt.Errorf("%s is not mapped", path)
}

// arm makes a uprobe of each site, eN for the site of number N, and enables all.
func arm(m elf.Machine, sites []site) error {
	for i, s := range sites {
		text := fmt.Sprintf("p:sdt/e%d %s:%#x", i, s.file, s.offset)
		if s.semaphore != 0 {
			text += fmt.Sprintf("(%#x)", s.semaphore)
		}
		for n, operand := range s.operands {
			arg, err := fetch(m, operand)
			if err != nil {
				return fmt.Errorf("%s: %w", s.probe, err)
			}
			text += fmt.Sprintf(" a%d=%s", n, arg)
		}
		if err := put("uprobe_events", text); err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
	}
	return put("events/sdt/enable", "1")
}

func disarm() error {
	return errors.Join(put("events/sdt/enable", "0"), os.WriteFile(tracing+"/uprobe_events", nil, 0o644))
}

// put writes a line to the end of a file of tracefs.
func put(file, line string) error {
	f, err := os.OpenFile(tracing+"/"+file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line + "\n")
	return err
}

var (
	hitLine  = regexp.MustCompile(`: e(\d+): \(0x[0-9a-f]+\)(.*)$`)
	argument = regexp.MustCompile(` a\d+=(\S+)`)
)

// hits returns the hits of the trace, as the program writes them.
func hits(sites []site) ([]string, error) {
	time.Sleep(100 * time.Millisecond)
	trace, err := os.ReadFile(tracing + "/trace")
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(trace)) {
		match := hitLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if match == nil {
			continue
		}
		var n int
		fmt.Sscan(match[1], &n)
		hit := sites[n].probe
		for _, arg := range argument.FindAllStringSubmatch(match[2], -1) {
			hit += " " + arg[1]
		}
		all = append(all, hit)
	}
	return all, nil
}

// same compares lines in any order, since each processor has a buffer of its own.
func same(what string, got, want []string) error {
	times := map[string]int{}
	for _, line := range got {
		times[line]++
	}
	for _, line := range want {
		times[line]--
	}
	var differences []string
	for _, line := range slices.Sorted(maps.Keys(times)) {
		if n := times[line]; n != 0 {
			differences = append(differences, fmt.Sprintf("%+d %q", n, line))
		}
	}
	if differences == nil {
		return nil
	}
	return fmt.Errorf("%d %s, want %d; more or fewer of: %s", len(got), what, len(want), strings.Join(differences, ", "))
}

//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tracers has perf and bpftrace trace the program, if they are there.
func tracers(sites []site) {
	os.Setenv("HOME", "/tmp")
	os.Setenv("PATH", "/usr/bin:/bin")
	if _, err := exec.LookPath("perf"); err == nil {
		report(perf(sites), "perf counts the hits of each probe")
	}
	if _, err := exec.LookPath("bpftrace"); err == nil {
		report(bpftrace(), "bpftrace prints the hits of each probe")
	}
}

// rounds is how often a tracer sees the program run.
const rounds = 3

// perf counts hits by the events that perf makes of notes. One that it does not take is left out.
func perf(sites []site) error {
	for _, file := range []string{program, library} {
		if err := run("perf", "buildid-cache", "--add", file); err != nil {
			return err
		}
	}
	var events, refused []string
	for _, s := range sites {
		event := "sdt_" + s.probe
		if strings.HasPrefix(s.probe, "hot:") || slices.Contains(events, event) {
			continue
		}
		if err := run("perf", "probe", "%"+event); err != nil {
			fmt.Printf("perf does not take %s: %s\n", s.probe, strings.ReplaceAll(err.Error(), "\n", "; "))
			refused = append(refused, s.probe)
			continue
		}
		events = append(events, event)
	}
	if len(refused) > 1 {
		return fmt.Errorf("takes none of %s", strings.Join(refused, " "))
	}
	c := exec.Command("perf", "stat", "-x", ",", "-o", "/tmp/stat", "-e", strings.Join(events, ","), program)
	c.Stdin = strings.NewReader(strings.Repeat("\n", rounds))
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("perf stat: %w: %s", err, err.(*exec.ExitError).Stderr)
	}
	counts, err := os.ReadFile("/tmp/stat")
	if err != nil {
		return err
	}
	var got []string
	for line := range strings.Lines(string(counts)) {
		fields := strings.Split(line, ",")
		if len(fields) < 3 || !strings.HasPrefix(fields[2], "sdt_") {
			continue
		}
		n, err := strconv.Atoi(fields[0])
		if err != nil {
			return fmt.Errorf("perf stat: %s", strings.TrimSpace(line))
		}
		got = append(got, slices.Repeat([]string{strings.TrimPrefix(fields[2], "sdt_")}, n)...)
	}
	want := slices.DeleteFunc(probesOf(string(out)), func(probe string) bool { return slices.Contains(refused, probe) })
	return errors.Join(same("hits", got, want), run("perf", "probe", "-d", "sdt_*:*"))
}

// bpftrace prints each hit, of a process that runs already.
func bpftrace() error {
	p, err := start()
	if err != nil {
		return err
	}
	const script = "usdt:" + program + ":*:*, usdt:" + library + ":*:* { printf(\"hit %s\\n\", probe); }"
	c := exec.Command("bpftrace", "-B", "line", "-e", script)
	pipe, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		return err
	}
	lines := make(chan string, 1000)
	go func() {
		for out := bufio.NewScanner(pipe); out.Scan(); {
			lines <- out.Text()
		}
		close(lines)
	}()
	if err := await(lines, "Attach"); err != nil {
		return errors.Join(err, c.Wait())
	}
	time.Sleep(time.Second)
	var want []string
	for range rounds {
		wanted, _, err := p.round("")
		if err != nil {
			return err
		}
		want = append(want, wanted...)
	}
	time.Sleep(2 * time.Second)
	c.Process.Signal(syscall.SIGINT)
	var got []string
	for line := range lines {
		if probe, ok := strings.CutPrefix(line, "hit usdt:"); ok {
			_, name, _ := strings.Cut(probe, ":")
			got = append(got, name)
		}
	}
	c.Wait()
	return errors.Join(same("hits", got, probesOf("want "+strings.Join(want, "\nwant "))), p.end())
}

// await reads lines until one begins with a text.
func await(lines <-chan string, text string) error {
	var before []string
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return fmt.Errorf("bpftrace: %s", strings.Join(before, "; "))
			}
			if strings.HasPrefix(line, text) {
				return nil
			}
			before = append(before, line)
		case <-time.After(2 * time.Minute):
			return fmt.Errorf("bpftrace does not attach: %s", strings.Join(before, "; "))
		}
	}
}

// probesOf returns the probes that the program says are hit, without arguments.
func probesOf(out string) []string {
	var probes []string
	for line := range strings.Lines(out) {
		if want, ok := strings.CutPrefix(line, "want "); ok {
			probes = append(probes, strings.Fields(want)[0])
		}
	}
	return probes
}

func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

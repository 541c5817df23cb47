package process_test

import (
	"os"
	"slices"
	"testing"

	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/expect"
)

func TestEnvironment(t *testing.T) {
	p := &process.Process{Environ: []string{"A=1", "AB=2", "TMPDIR=/there"}}
	expect.Equal(t, "1", p.Getenv("A"), "A")
	expect.Equal(t, "", p.Getenv("B"), "B")
	expect.Equal(t, "/there", p.TempDir(), "where temporary files go")
	if got, want := p.EnvironWith("A", "3"), []string{"AB=2", "TMPDIR=/there", "A=3"}; !slices.Equal(got, want) {
		t.Errorf("changed: %q, want %q", got, want)
	}
	if p.Getenv("A") != "1" {
		t.Error("the run's own environment has changed")
	}
}

// A run that the process does not belong to tells its end, and ends nothing.
func TestEndOfOthersProcess(t *testing.T) {
	p := &process.Process{}
	for status, want := range map[process.Status]int{
		{}: 0, {Code: 7}: 7, {Signal: os.Interrupt}: 130, {Signal: os.Kill}: 137,
	} {
		expect.Equal(t, want, p.End(status), "%v: exit status", status)
	}
	var died os.Signal
	p.Kill = func(sig os.Signal) { died = sig }
	if p.End(process.Status{Signal: os.Kill}); died != os.Kill {
		t.Errorf("died by %v", died)
	}
}

func TestIgnoredSignalsAreNotWatched(t *testing.T) {
	var watched []os.Signal
	p := &process.Process{Notify: func(_ chan<- os.Signal, signals ...os.Signal) { watched = signals }}
	both := []os.Signal{os.Interrupt, os.Kill}
	p.Watch(func(os.Signal) {}, both...)
	expect.Equal(t, both, watched, "watches")
	p.Ignored = func(sig os.Signal) bool { return sig == os.Interrupt }
	p.Watch(func(os.Signal) {}, both...)
	expect.Equal(t, both[1:], watched, "watches")
	watched = nil
	p.Watch(func(os.Signal) {}, os.Interrupt) // Notify would take none for all
	if watched != nil {
		t.Errorf("watches %v", watched)
	}
}

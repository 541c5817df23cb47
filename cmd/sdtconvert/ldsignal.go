package main

import (
	"os"
	"os/exec"
	"path/filepath"
)

// watch passes signals on to the linker while it runs. Before and after, they end
// this process, without a trace of what it has made.
func (l *link) watch() {
	l.watched.Do(func() { l.Watch(l.signalled, notable(passedOn)...) })
}

func (l *link) signalled(sig os.Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.running != nil:
		l.passed = sig
		forward(l.running, sig)
	case ends(sig):
		l.program.files.Abandon()
		l.temp.remove()
		dieBy(sig)
	}
}

// start starts the linker, unless a signal has come first.
func (l *link) start(cmd *exec.Cmd) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	l.running = cmd.Process
	return nil
}

// ended says that the linker runs no more, and returns the last signal that it was
// passed, or nil.
func (l *link) ended() os.Signal {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = nil
	return l.passed
}

// makeTemp makes the folder for copies.
func (l *link) makeTemp() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.temp, err = newTempFolder()
	return err
}

// writeTemp writes a file into that folder, unless a signal has come first.
func (l *link) writeTemp(name string, data []byte) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	file := filepath.Join(l.temp.path, name)
	return file, os.WriteFile(file, data, 0o600)
}

package main

import (
	"bytes"
	"cmp"
	"io"
	"os/exec"
	"runtime"
	"strings"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/provider/object"
	"sdtconvert/internal/provider/preprocess"
	"sdtconvert/internal/responsefile"
)

// compilerWords are the compiler of the environment and its flags, nil where none is named.
func (p *program) compilerWords() []string {
	words := responsefile.Split([]byte(p.Getenv("CC")))
	if len(words) == 0 {
		return nil
	}
	return append(words, responsefile.Split([]byte(p.Getenv("CFLAGS")))...)
}

// compilerTarget asks a compiler what it makes objects for. It is "" where there is none,
// or it does not say.
func (p *program) compilerTarget(words []string) string {
	if len(words) == 0 || strings.HasPrefix(words[0], "-") {
		return ""
	}
	out, err := p.output(io.Discard, append(words, "-dumpmachine"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// preprocessor is the C preprocessor of a run, for what target says.
func (p *program) preprocessor(o *providerOptions, target preprocess.Target) *preprocess.Options {
	return &preprocess.Options{
		Process: p.Process, Program: o.cpp, Flags: o.cppFlags, Class: o.class(), Sysroot: o.sysroot, Quiet: o.quiet, Target: target,
		Started: func(kill func()) {
			p.watchSignals()
			p.killChild.Store(&kill)
		},
	}
}

// preprocessTarget returns what files are preprocessed for. target is the object's, nil for a
// header.
func (o *providerOptions) preprocessTarget(target *object.Target) preprocess.Target {
	t := preprocess.Target{Triplet: o.target, System: o.system}
	name := cmp.Or(o.target, runtime.GOOS)
	_, err := object.ParseSystem(name)
	t.HasSystem = err == nil || target != nil
	if target != nil {
		t.ABI = target.ABI()
	} else if o.target != "" {
		t.ABI, _ = machines.Target(o.target)
	}
	return t
}

// output runs a program and returns what it writes.
func (p *program) output(stderr io.Writer, words []string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.Environ, &out, stderr
	err := cmd.Run()
	return out.Bytes(), err
}

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/provider/output"
	"sdtconvert/internal/provider/preprocess"
	"sdtconvert/internal/responsefile"
)

// makeProvider makes the header or the object of provider files. The triplet is that in the
// program's name, "" for none.
func (p *program) makeProvider(args []string, triplet string) error {
	o, err := parseProviderOptions(args)
	switch {
	case err != nil:
		return err
	case o.help:
		_, err := (&helper{}).run(p, []string{"provider"})
		return err
	case o.version:
		_, err := p.version(nil)
		return err
	}
	o.target = cmp.Or(o.target, triplet)
	for _, warning := range o.warnings {
		message.Warning(p.Stderr, warning)
	}
	if o.system, err = o.targetSystem(); err != nil {
		return err
	}
	var target *output.Target
	if o.object { // whose system may be another
		if target, err = p.objectTarget(o); err != nil {
			return err
		}
		o.system = target.System
		if err := o.checkDefault(); err != nil {
			return err
		}
	}
	providers, err := p.readProviders(o, target)
	if err != nil {
		return err
	}
	var data []byte
	switch {
	case o.header:
		data = output.WriteHeader(o.output, providers, o.form())
	case o.system.DOF():
		data, err = p.dofObject(o, target, providers)
	default:
		data, err = target.Write(providers, o.shared())
	}
	if err != nil {
		return err
	}
	return p.files.New(o.output, data)
}

// targetSystem is the system that the command line names, or else the host's. Objects may
// tell another. Stubs are the same everywhere.
func (o *providerOptions) targetSystem() (provider.System, error) {
	system, err := provider.ParseSystem(cmp.Or(o.target, runtime.GOOS))
	if err != nil && (!o.header || !o.stubs) {
		return system, &statusError{exitUsage, err}
	}
	return system, nil
}

// readProviders reads all files, and prints their warnings. target is the object's, nil for a
// header.
func (p *program) readProviders(o *providerOptions, target *output.Target) ([]*provider.Provider, error) {
	var preprocess func(path string) (string, error)
	if o.preprocess {
		preprocess = p.preprocessor(o, o.preprocessTarget(target)).File
	}
	var providers []*provider.Provider
	for _, path := range o.sources {
		if err := o.isInput(path); err != nil {
			return nil, err
		}
		file, err := provider.Read(path, preprocess)
		if err != nil {
			return nil, err
		}
		warnings := file.Warnings
		if !o.system.DOF() { // where what these are about is a fault
			warnings = append(warnings, provider.Warnings(file.Providers)...)
		}
		for _, warning := range warnings {
			if !o.quiet {
				message.Warning(p.Stderr, warning)
			}
		}
		providers = append(providers, file.Providers...)
	}
	return providers, checkProviders(o, providers)
}

// checkProviders applies the rules that hold for what is made of providers.
func checkProviders(o *providerOptions, providers []*provider.Provider) error {
	dof := o.system.DOF() && !o.stubs
	faults := provider.Check(providers, o.header && o.stubs || dof)
	if dof {
		faults = append(faults, provider.CheckDOF(providers)...)
	}
	return errors.Join(faults...)
}

// isInput refuses an output that is an input.
func (o *providerOptions) isInput(path string) error {
	in, err := os.Stat(path)
	if err != nil {
		return err
	}
	if out, err := os.Stat(o.output); err == nil && os.SameFile(in, out) {
		return errIsOutput(path)
	}
	return nil
}

// checkDefault refuses to overwrite an object by its default name, unless -G has written it:
// a source of that name may have been compiled to it.
func (o *providerOptions) checkDefault() error {
	if _, err := os.Stat(o.output); !o.defaultOutput || errors.Is(err, fs.ErrNotExist) || output.IsOwnObject(o.output) {
		return nil
	}
	return fmt.Errorf("%s: was not written by -G, and would be overwritten; name another output with -o, or this one if it is meant", o.output)
}

// isMember refuses an output that is a member of an input, a thin archive. Inputs that
// cannot be read are reported by their readers.
func (o *providerOptions) isMember(path string) error {
	out, err := input.Open(o.output)
	if err != nil {
		return nil
	}
	defer out.Close()
	var found error
	input.Each(path, input.Options{FollowThin: true}, func(src *input.Source) error {
		if src.File != nil && os.SameFile(src.File.Info, out.Info) {
			found = errIsOutput(src.Name)
		}
		return found
	})
	return found
}

// objectTarget is what an object is made for, as the objects of the link tell it.
func (p *program) objectTarget(o *providerOptions) (*output.Target, error) {
	t := &output.Target{System: o.system}
	var faults []error
	for _, path := range o.objects {
		if err := cmp.Or(o.isInput(path), o.isMember(path)); err != nil {
			faults = append(faults, err)
		} else if err := t.Add(path); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) == 0 && !t.Known() {
		return t, p.nameTarget(t, o)
	}
	return t, errors.Join(faults...)
}

// nameTarget says what the object is for where no object tells: what the command line
// names, else what the compiler of the environment makes, else the host.
func (p *program) nameTarget(t *output.Target, o *providerOptions) error {
	words := slices.Concat(p.compilerWords(), o.machineFlags)
	name := o.target
	if name == "" {
		if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
			name = p.preprocessor(o, preprocess.Target{}).Triplet(words)
		}
		system, err := provider.ParseSystem(name)
		if err != nil {
			return &statusError{exitUsage, err}
		}
		if name != "" {
			t.System = system
		}
	}
	if err := t.Name(cmp.Or(name, runtime.GOARCH), words); err != nil {
		return usageError{err}
	}
	return nil
}

// compilerWords returns the compiler of the environment and its flags. There may be flags alone, as builds of 32-bit
// programs give them to SystemTap's dtrace.
func (p *program) compilerWords() []string {
	return append(responsefile.Split([]byte(p.Getenv("CC"))), responsefile.Split([]byte(p.Getenv("CFLAGS")))...)
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
func (o *providerOptions) preprocessTarget(target *output.Target) preprocess.Target {
	t := preprocess.Target{Triplet: o.target, System: o.system}
	name := cmp.Or(o.target, runtime.GOOS)
	_, err := provider.ParseSystem(name)
	t.HasSystem = err == nil || target != nil
	if target != nil {
		t.ABI = target.ABI()
	} else if o.target != "" {
		t.ABI, _ = machines.Target(o.target)
	}
	return t
}

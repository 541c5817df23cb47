package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"sdtconvert/internal/ld"
	"sdtconvert/internal/ld/line"
)

// What the environment says to a linker wrapper, beside what package ld asks it.
const (
	envFlags  = "SDTCONVERT_FLAGS" // flags of `sdtconvert ld`
	envSwitch = "SDTCONVERT"       // switchOff: only run the real linker

	switchOff = "off"
)

// linkerName reports whether the program was called by the name of a linker.
func linkerName(program string) (name string, ok bool) {
	name = strings.TrimSuffix(filepath.Base(program), ".exe")
	if strings.HasPrefix(name, "sdtconvert") {
		return "", false
	}
	for _, part := range []string{name, name[strings.LastIndex(name, "-ld")+1:]} {
		if part == "ld" || strings.HasPrefix(part, "ld.") {
			return name, true
		}
	}
	return name, name == "mold"
}

// runAsLinker is the program under the name of a linker.
func (p *program) runAsLinker(name string, args []string) int {
	f := linkerFlags()
	var words []string
	if p.Getenv(envSwitch) != switchOff {
		words = line.Split([]byte(p.Getenv(envFlags)))
	}
	err := f.parseLinker(words)
	if err == nil && f.NArg() > 0 {
		err = usagef("%q is no flag", f.Arg(0))
	}
	if errors.Is(err, pflag.ErrHelp) {
		err = usagef("--help is for sdtconvert ld")
	}
	if err != nil {
		return p.report(fmt.Errorf("%s: %w", envFlags, err))
	}
	return p.link(f, name, args)
}

// runLinker is `sdtconvert ld`.
func (p *program) runLinker(args []string) int {
	f := linkerFlags()
	err := f.parseLinker(args)
	if errors.Is(err, pflag.ErrHelp) {
		_, err = p.help([]string{"ld"})
		if err == nil {
			return exitOK
		}
	}
	if err == nil && f.ArgsLenAtDash() != 0 {
		err = usagef("the linker's arguments follow --, and there is none")
	}
	if err != nil {
		return p.report(err)
	}
	return p.link(f, "ld", f.Args())
}

// linkFlags are the flags of a linker wrapper.
type linkFlags struct {
	*flags
	linker      string
	inPlace     bool
	noStubs     bool
	noUndefined bool
}

func linkerFlags() *linkFlags {
	f := &linkFlags{flags: newConversionFlags("ld")}
	f.forLinker = true
	f.SetInterspersed(false)
	f.defineRecords()
	f.StringVar(&f.linker, "linker", "", "")
	f.BoolVar(&f.inPlace, "in-place", false, "")
	f.BoolVar(&f.noStubs, "no-stubs", false, "")
	f.BoolVar(&f.noUndefined, "no-undefined-probes", false, "")
	return f
}

func (f *linkFlags) parseLinker(args []string) error {
	if _, err := f.parse(args); err != nil {
		return err
	}
	if f.Changed("linker") && f.linker == "" {
		return usagef("the linker has no name")
	}
	return nil
}

// link runs the real linker, and returns its exit status, or does not return.
func (p *program) link(f *linkFlags, name string, args []string) int {
	status, err := ld.Run(p.Process, ld.Options{
		Convert: f.conversion(0), Linker: f.linker, Off: p.Getenv(envSwitch) == switchOff, InPlace: f.inPlace, NoStubs: f.noStubs,
		NoUndefinedProbes: f.noUndefined,
	}, name, args)
	if err != nil {
		p.report(err)
		return exitFailed
	}
	return p.End(status)
}

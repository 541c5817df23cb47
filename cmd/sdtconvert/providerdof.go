package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/dtrace"
	"sdtconvert/internal/message"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/provider/output"
)

// dofObject disables the sites in the objects, and makes the object that describes them to DTrace's
// kernel. It examines all objects before it changes any.
func (p *program) dofObject(o *providerOptions, t *output.Target, providers []*provider.Provider) ([]byte, error) {
	d := output.DOF{Lazy: o.lazy}
	if path := p.drti(o); path != "" {
		if err := o.isInput(path); err != nil {
			return nil, err
		}
		if err := d.OpenDrti(path); err != nil {
			return nil, err
		}
	}
	if err := t.CheckDOF(d); err != nil {
		return nil, err
	}
	set, err := p.siteSet(o, providers)
	if err != nil {
		return nil, err
	}
	d.Providers = set.Providers(o.system.LongestFunction())
	if len(d.Providers) == 0 && o.strict {
		return nil, fmt.Errorf("no object has a site of a probe")
	}
	if _, err := t.WriteDOF(d); err != nil { // for which there may be no room
		return nil, err
	}
	if err := p.disableSites(o, providers); err != nil {
		return nil, err
	}
	// Read again: an object that was given by two names has the aliases of one.
	if set, err = p.siteSet(o, providers); err != nil {
		return nil, err
	}
	d.Providers = set.Providers(o.system.LongestFunction())
	p.warnDOF(o, set, d)
	return t.WriteDOF(d)
}

// siteSet collects the sites of all objects.
func (p *program) siteSet(o *providerOptions, providers []*provider.Provider) (*output.ProbeSites, error) {
	set := output.NewProbeSites(providers, o.aliases())
	var faults []error
	for _, path := range o.objects {
		if err := set.Add(path); err != nil {
			faults = append(faults, err)
		}
	}
	return set, errors.Join(faults...)
}

// aliases is how the objects are converted: the same, wherever the tree that is built is.
func (o *providerOptions) aliases() dtrace.Aliases {
	d := o.system.Aliases()
	d.Directory, _ = os.Getwd() // without one, the objects alone decide
	for i, path := range o.objects {
		if !filepath.IsAbs(path) || d.Directory != "" && isBelow(d.Directory, path) {
			continue
		}
		d.Directory = filepath.Dir(path)
		for _, earlier := range o.objects[:i] {
			for filepath.IsAbs(earlier) && !isBelow(d.Directory, earlier) && filepath.Dir(d.Directory) != d.Directory {
				d.Directory = filepath.Dir(d.Directory)
			}
		}
	}
	return d
}

// isBelow reports whether a path begins with a directory, by its text.
func isBelow(directory, path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(directory, string(filepath.Separator))+string(filepath.Separator))
}

// disableSites converts the objects in their places. They keep their times, so that make
// does not take what was linked of them for old.
func (p *program) disableSites(o *providerOptions, providers []*provider.Provider) error {
	c := convert.New(convert.Options{
		Patch: output.NewProbeSites(providers, o.aliases()).Options(), Jobs: 1, Files: len(o.objects), FollowThin: true,
	}, p.files)
	failed, err := p.runAll(o.objects, 1, false, func(file string) *convert.Result { return c.File(file, file) })
	if failed {
		return errors.New(o.output + ": not written")
	}
	return err
}

// warnDOF says what does not work of what is made.
func (p *program) warnDOF(o *providerOptions, set *output.ProbeSites, d output.DOF) {
	if o.quiet {
		return
	}
	if len(d.Providers) == 0 && len(set.UnarmableTests) == 0 {
		message.Warning(p.Stderr, fmt.Errorf("%s: holds no probe, as no object with a site of one is given; give -G all objects of the link", o.output))
	}
	if len(set.UnarmableTests) > 0 {
		message.Warning(p.Stderr, fmt.Errorf("%s: is-enabled tests are never true: no kernel with DTrace arms them on this machine", strings.Join(set.UnarmableTests, ", ")))
	}
	if len(d.Providers) > 0 && d.Drti == nil && !o.lazy {
		message.Warning(p.Stderr, fmt.Errorf("%s: registers no probe when a program starts: there is no %s; --sysroot or --drti names one",
			o.output, o.system.Drti("/")))
	}
}

// drti is the file with the code that registers a program: the one that is named, or that
// of the target's tree. It is "" where there is none.
func (p *program) drti(o *providerOptions) string {
	sysroot := p.sysroot(o)
	if o.drti != "" || o.lazy || sysroot == "" {
		return o.drti
	}
	path := o.system.Drti(sysroot)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return ""
	}
	return path
}

// sysroot is the tree of the target: one that is named here or to the compiler, or that
// of the host if it is of the same system.
func (p *program) sysroot(o *providerOptions) string {
	if o.sysroot != "" {
		return o.sysroot
	}
	for _, word := range p.compilerWords() {
		if dir, ok := strings.CutPrefix(word, "--sysroot="); ok {
			return dir
		}
	}
	if host, err := provider.ParseSystem(runtime.GOOS); err == nil && host == o.system {
		return "/"
	}
	return ""
}

package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
)

// generator is what the commands have in common that make one file of many
// objects, which they leave alone: stubs and sites.
type generator struct {
	*flags
	asm bool
}

// generatorFlags defines their flags.
func generatorFlags(f *pflag.FlagSet, output, asm *option) *generator {
	g := &generator{flags: &flags{FlagSet: f, layout: linkerset.Pairs.String()}}
	g.defineNames()
	output.string(f, &g.output, "")
	asm.bool(f, &g.asm)
	return g
}

// validate checks a command line that was parsed, and completes what it says.
func (g *generator) validate() error {
	g.files = g.Args()
	if err := g.checkNames(); err != nil {
		return err
	}
	layout, err := linkerset.ParseLayout(g.layout, g.section)
	if err != nil {
		return usageError{err}
	}
	g.patch.Layout, g.patch.AutoLayout = layout, !g.Changed("layout") && !g.Changed("section")
	g.files, err = input.Distinct(g.files)
	return err
}

// eachObject opens the objects, and perhaps shared libraries, one after the other,
// and reports the errors of all. Files that are neither and hold no probes are passed
// over.
func (p *program) eachObject(g *generator, shared bool, work func(o *input.Object) error) (failed bool) {
	link := &input.Link{Options: input.Options{FollowThin: g.follow}, Names: g.patch.Names, Shared: shared}
	for _, file := range g.files {
		link.Each(file, work, func(err error) {
			failed = true
			message.Error(p.Stderr, err)
		})
	}
	return failed
}

// isOutput reports whether a file is what will be written.
func (g *generator) isOutput(src *input.Source) bool {
	info, err := os.Stat(g.output)
	return g.output != "" && err == nil && os.SameFile(info, src.File.Info)
}

// errIsOutput returns the error for an input that is the output.
func errIsOutput(name string) error {
	return fmt.Errorf("%s: is the output as well, and would be lost", name)
}

// writeOutput writes what was made.
func (p *program) writeOutput(g *generator, data []byte) error {
	if g.output == "" {
		_, err := p.Stdout.Write(data)
		return err
	}
	return p.files.New(g.output, data)
}

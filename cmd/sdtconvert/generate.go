package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// generator is what the commands have in common that make one file of many
// objects, which they leave alone.
type generator struct {
	*flags
	asm   bool
	first *elfreloc.Object // of the files, which is closed: its machine is that of all
}

// generatorFlags defines their flags.
func generatorFlags(name string) *generator {
	g := &generator{flags: &flags{FlagSet: newFlagSet(name), layout: linkerset.Pairs.String()}}
	g.defineNames()
	g.StringVarP(&g.output, "output", "o", "", "")
	g.BoolVar(&g.asm, "asm", false, "")
	return g
}

// parse checks a command line.
func (g *generator) parse(args []string) error {
	if err := parseFlags(g.FlagSet, args); err != nil {
		return err
	}
	g.files = g.Args()
	if err := g.checkNames(); err != nil {
		return err
	}
	layout, err := linkerset.ParseLayout(g.layout, g.section)
	if err != nil {
		return usageError{err}
	}
	g.patch.Layout = layout
	g.files, err = input.Distinct(g.files)
	return err
}

// each opens the objects, one after the other, and reports the errors of all.
// Files that are no objects and hold no probes either are passed over.
func (g *generator) each(stderr io.Writer, open openFunc, work func(s *input.Object) error) (failed bool) {
	report := func(err error) {
		if err != nil {
			failed = true
			message.Error(stderr, err)
		}
	}
	for _, name := range g.files {
		report(g.file(name, func(src *input.Source) error {
			report(g.object(src, open, work))
			return nil
		}))
	}
	return failed
}

// openFunc is input.Source.Relocatable, or what takes more.
type openFunc func(src *input.Source, names patch.Names) (*input.Object, error)

func (g *generator) file(name string, work func(src *input.Source) error) error {
	in, err := input.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return in.Each(input.Options{FollowThin: g.follow}, work)
}

func (g *generator) object(src *input.Source, open openFunc, work func(s *input.Object) error) error {
	s, err := open(src, g.patch.Names)
	if errors.Is(err, input.ErrPassedOver) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := g.sameMachine(s.Object); err != nil {
		return err
	}
	return work(s)
}

// sameMachine refuses files that cannot be linked with each other.
func (g *generator) sameMachine(o *elfreloc.Object) error {
	if g.first == nil {
		g.first = o
	}
	f := g.first
	if f.Machine == o.Machine && f.Layout.Class == o.Layout.Class && f.Layout.Order == o.Layout.Order {
		return nil
	}
	return fmt.Errorf("%s: is for %s, and %s for %s; give the objects of one link", o.Name, abi(o), f.Name, abi(f))
}

func abi(o *elfreloc.Object) string {
	return fmt.Sprintf("%v, %v, %v", o.Machine, o.Layout.Class, o.Layout.Order)
}

// isOutput reports whether a file is what will be written.
func (g *generator) isOutput(src *input.Source) bool {
	info, err := os.Stat(g.output)
	return g.output != "" && err == nil && input.SameFile(info, src.File.Info)
}

func errIsOutput(s *input.Object) error {
	return fmt.Errorf("%s: is the output as well, and would be lost", s.Name)
}

// put writes what was made.
func (p *program) put(g *generator, data []byte) error {
	if g.output == "" {
		_, err := p.Stdout.Write(data)
		return err
	}
	return p.files.New(g.output, data)
}

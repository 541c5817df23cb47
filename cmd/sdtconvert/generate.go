package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/replace"
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
	g.files, err = distinct(g.files)
	return err
}

// each opens the objects, one after the other, and reports the errors of all.
// Files that are no objects and hold no probes either are passed over.
func (g *generator) each(stderr io.Writer, open openFunc, work func(s *subject) error) (failed bool) {
	report := func(err error) {
		if err != nil {
			failed = true
			printError(stderr, err)
		}
	}
	for _, name := range g.files {
		report(g.file(name, func(src *source) error {
			report(g.object(src, open, work))
			return nil
		}))
	}
	return failed
}

// openFunc is openSubject, or what takes more.
type openFunc func(src *source, names patch.Names) (*subject, error)

func (g *generator) file(name string, work func(src *source) error) error {
	in, err := replace.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if in.Info.Size() <= smallFile {
		if err := in.Load(); err != nil {
			return err
		}
	}
	return eachSource(in, g.follow, work)
}

func (g *generator) object(src *source, open openFunc, work func(s *subject) error) error {
	s, err := open(src, g.patch.Names)
	if errors.Is(err, errPassedOver) {
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
func (g *generator) isOutput(src *source) bool {
	info, err := os.Stat(g.output)
	return g.output != "" && err == nil && os.SameFile(info, src.file.Info)
}

func errIsOutput(s *subject) error {
	return fmt.Errorf("%s: is the output as well, and would be lost", s.Name)
}

// put writes what was made.
func (g *generator) put(data []byte, stdout io.Writer) error {
	if g.output == "" {
		_, err := stdout.Write(data)
		return err
	}
	watchSignals()
	return replace.New(g.output, data)
}

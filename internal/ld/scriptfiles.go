package ld

import (
	"debug/elf"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
)

// comparedFile is what a linker compares with patterns.
type comparedFile struct {
	in      *linkInput
	was, is line.File // before there were copies, and with them
	loaded  bool      // GNU ld reads it because a pattern names it, and for no other reason
}

func (f *comparedFile) changed() bool { return f.was != f.is }

// compared finds all that the linker compares with patterns.
func (c *scriptCopier) compared(roots []*script) error {
	c.files, c.unsure = nil, false
	patterns := false
	for _, root := range roots {
		root.each(func(s *script) { patterns = patterns || len(s.text.Patterns) > 0 })
	}
	if !patterns {
		return nil
	}
	var errs []error
	for i := range c.line.Args {
		arg, in := &c.line.Args[i], c.byArg[i]
		switch {
		case in != nil && arg.Kind == line.Input:
			errs = append(errs, c.compare(in, arg.Value, arg.Value, false))
		case in != nil:
			errs = append(errs, c.compare(in, "-l"+arg.Value, "-l"+arg.Value, false))
		case arg.Kind == line.Library:
			c.unsure = true
		}
	}
	for _, root := range roots {
		root.each(func(s *script) {
			for _, name := range s.text.Inputs {
				is, err := c.inputName(s, name)
				errs = append(errs, err)
				found := c.line.ScriptInput(c.dialect, s.place, name)
				if in := c.byPath[found.Path]; in != nil {
					errs = append(errs, c.compare(in, name.Text, is, false))
				} else {
					c.unsure = true
				}
			}
			for _, p := range s.text.Patterns {
				if in := c.byPath[c.loaded(p).Path]; in != nil && !c.isGiven(p.Text) {
					errs = append(errs, c.compare(in, p.Text, p.Text, true))
				}
			}
		})
	}
	return errors.Join(errs...)
}

func (c *scriptCopier) isGiven(name string) bool {
	return slices.ContainsFunc(c.files, func(f comparedFile) bool { return f.was.Given == name })
}

// compare takes in a file that has a name in the line or in a script, and another with
// copies.
func (c *scriptCopier) compare(in *linkInput, given, with string, loaded bool) error {
	if in.elf != elf.ET_REL && !in.isArchive() && in.typ != filetype.Bitcode { // others have no sections to choose
		return nil
	}
	was := line.File{Name: in.path, Given: given, Archive: in.isArchive()}
	is := was
	place, moved := c.place(in)
	if moved {
		is.Name, is.Given = place, place
	} else if with != given {
		is.Given = with
		if !strings.HasPrefix(given, "-l") {
			is.Name = with
		}
	}
	if !was.Archive {
		c.files = append(c.files, comparedFile{in, was, is, loaded})
		return nil
	}
	members, err := c.membersOf(in.file, in.path)
	if err != nil {
		return err
	}
	now := members
	if _, copied := c.done.copies[in.path]; copied && in.typ == filetype.ThinArchive {
		if now, err = c.membersOf(place, place); err != nil {
			return err
		}
	}
	for i, member := range members {
		was.Member, is.Member = member, ""
		if i < len(now) {
			is.Member = now[i]
		}
		c.files = append(c.files, comparedFile{in, was, is, loaded})
	}
	return nil
}

// membersOf returns the names of the members of an archive, as patterns are compared with
// them: to GNU ld, that of a thin one has the name of its file.
func (c *scriptCopier) membersOf(file, path string) (names []string, err error) {
	if names, ok := c.members[path]; ok {
		return names, nil
	}
	f, err := input.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := f.Archive(input.Options{FollowThin: true})
	if err != nil {
		return nil, nil
	}
	// What is wrong with an archive is the linker's to complain of.
	if a.Thin {
		a.Each(func(src *input.Source) error {
			name := src.Member.Name
			if src.Inner != nil {
				name = src.Inner.Name
			}
			names = append(names, c.memberName(name, path))
			return nil
		})
	} else {
		for m, err := range a.Members() {
			if err != nil {
				break
			}
			names = append(names, m.Name)
		}
	}
	c.members[path] = names
	return names, nil
}

func (c *scriptCopier) memberName(name, path string) string {
	switch {
	case c.dialect != line.GNU:
		return name[strings.LastIndexByte(name, '/')+1:]
	case filepath.IsAbs(name):
		return name
	}
	return path[:strings.LastIndexByte(path, '/')+1] + name
}

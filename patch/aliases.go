package patch

import (
	"debug/elf"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/resolve"
)

// AliasPrefix is "$dtrace", what the aliases of functions begin with, by which DOF refers to them; a
// number, ".", and the function's name follow.
const AliasPrefix = "$dtrace"

// aliases are the names that DOF knows functions of an object by.
type aliases struct {
	o         *elfreloc.Object
	directory string
	have      map[image.Addr]string // those that the object has, by the place of the function
	id        string                // of the object, "" until it is needed
}

// newAliases finds the aliases that an earlier run has added to an object. Absolute paths of
// objects count from a directory, "" for none, for the numbers of new ones.
func newAliases(o *elfreloc.Object, directory string) (*aliases, error) {
	a := &aliases{o: o, directory: directory, have: map[image.Addr]string{}}
	syms, err := o.Symbols()
	if err != nil {
		return a, err
	}
	for i, s := range syms.WithPrefix(AliasPrefix) {
		if i >= syms.FirstGlobal() && s.Defined() && len(s.Name) > len(AliasPrefix) {
			a.have[image.Addr{Section: s.Section, Offset: s.Value}] = s.Name
		}
	}
	return a, nil
}

// lookup returns the alias that the object has of a function, "" for none.
func (a *aliases) lookup(f resolve.Function) string {
	return a.have[image.Addr{Section: f.Section, Offset: f.Start}]
}

// name returns the alias of a function. That of a weak function is the same in all objects, as
// linkers keep one of them: what they keep defines it.
func (a *aliases) name(f resolve.Function) (string, error) {
	if name := a.lookup(f); name != "" {
		return name, nil
	}
	syms, err := a.o.Symbols()
	if err != nil {
		return "", err
	}
	if syms.At(f.Symbol).Bind == elf.STB_WEAK {
		return AliasPrefix + "." + f.Raw, nil
	}
	if a.id == "" {
		if a.id, err = objectID(a.o, a.directory); err != nil {
			return "", err
		}
	}
	return AliasPrefix + a.id + "." + f.Raw, nil
}

// objectID returns a number for an object that others of its link do not have: of its path
// from a directory, and of what is in it. DTrace takes the whole path, which differs from
// machine to machine; without any, copies of an object in two directories had one number.
func objectID(o *elfreloc.Object, directory string) (string, error) {
	h := fnv.New64a()
	io.WriteString(h, pathFrom(directory, o.Name))
	for off := int64(0); off < o.Size(); off += elfreloc.BlockSize {
		block, err := o.ReadFile(off, min(elfreloc.BlockSize, o.Size()-off))
		if err != nil {
			return "", err
		}
		h.Write(block)
	}
	return fmt.Sprint(h.Sum64()), nil
}

// pathFrom returns a path from a directory. It is not opened.
func pathFrom(directory, path string) string {
	if filepath.IsAbs(path) && directory != "" {
		if relative, err := filepath.Rel(directory, path); err == nil {
			path = relative
		}
	}
	return filepath.ToSlash(filepath.Clean(path))
}

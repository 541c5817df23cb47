package archive

import (
	"debug/elf"
	"strings"

	"sdtconvert/elfreloc"
)

// Symbols lists what ranlib would list of an object: the global, weak and unique
// symbols that it defines, common ones among them, in the order of its table.
func Symbols(o *elfreloc.Object) ([]string, error) {
	t, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	var names []string
	for i := t.FirstGlobal(); i < t.Len(); i++ {
		switch s := t.Nameless(i); s.Bind {
		case elf.STB_GLOBAL, elf.STB_WEAK, stbGNUUnique:
			if s.Section != 0 {
				names = append(names, strings.Clone(t.Name(i))) // lest it keeps all names
			}
		}
	}
	return names, nil
}

const stbGNUUnique elf.SymBind = 10 // STB_GNU_UNIQUE, of templates' static data

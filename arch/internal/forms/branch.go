package forms

import (
	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Branch says how sites are decoded that go to a stub.
type Branch struct {
	Len   int    // of a site, bytes
	Align uint64 // of a site, bytes
	// Field is the offset of the relocated field in a site, and the addend of the stub itself.
	Field uint64
	// Site is what the section's end cuts off, and Reaches what goes to the stub, in messages.
	Site, Reaches string
	// Form returns the form of the code of a site, or refuses it.
	Form func(code []byte) (arch.Form, error)
}

// Decode returns the site of a relocation.
func (b *Branch) Decode(t arch.Text, r elfreloc.Relocation) (arch.Site, error) {
	site := arch.Site{Offset: r.Offset - b.Field}
	if site.Code = t.At(site.Offset, b.Len); site.Code == nil {
		return arch.Site{}, arch.Refuse("", "%s that the section's end cuts off", b.Site)
	}
	var err error
	site.Form, err = b.Form(site.Code)
	addend := r.Addend - int64(b.Field)
	switch {
	case err != nil:
	case site.Offset%b.Align != 0:
		err = arch.Refuse("", "a branch that is not aligned")
	case addend != 0:
		err = arch.Refuse(arch.FixDirect, "%s to the stub%+d", b.Reaches, addend)
	}
	return site, err
}

// First returns where the branch at an offset goes, of those that branches finds in the code there: as
// much as the first of some lengths that the text has.
func First(
	t arch.Text, at uint64, branches func(code []byte, pc uint64, f func(at, to uint64)), lengths ...int,
) (to uint64, ok bool) {
	for _, n := range lengths {
		if code := t.At(at, n); code != nil {
			branches(code, at, func(from, dest uint64) {
				if from == at {
					to, ok = dest, true
				}
			})
			break
		}
	}
	return to, ok
}

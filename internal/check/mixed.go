package check

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// trait is something in which all objects of a link have to agree.
type trait struct {
	rule    *Rule
	subject string
	value   string
}

// trait notes that a file has a trait.
func (l *link) trait(t trait, file int) {
	if have := l.traits[t]; len(have) == 0 || have[len(have)-1] != file {
		l.traits[t] = append(have, file)
	}
}

// mixed finds the files that differ from most others in a trait.
func (l *link) mixed() {
	bySubject := map[trait][]trait{} // without a value
	for t := range l.traits {
		subject := trait{t.rule, t.subject, ""}
		bySubject[subject] = append(bySubject[subject], t)
	}
	for _, traits := range bySubject {
		slices.SortFunc(traits, func(a, b trait) int {
			return cmp.Or(cmp.Compare(len(l.traits[b]), len(l.traits[a])), cmp.Compare(l.traits[a][0], l.traits[b][0]), cmp.Compare(a.value, b.value))
		})
		usual := traits[0]
		for _, t := range traits[1:] {
			for _, file := range l.traits[t] {
				f := Finding{File: l.set.files[file], file: file}
				l.add(f, t.rule, "%s%s here, %s in %s; compile and convert it again with the flags of the other", describeTrait(t), t.value, usual.value, l.set.files[l.traits[usual][0]])
			}
		}
	}
}

func describeTrait(t trait) string {
	if t.subject == "" {
		return ""
	}
	return t.subject + ": "
}

func describeLayout(l linkerset.Layout) string {
	if l.Name == "" {
		return fmt.Sprintf("layout %v", l.Format)
	}
	return fmt.Sprintf("layout %v, section %s", l.Format, l.Section(arch.Probe))
}

// describeFlag returns whether a flag was given, in words.
func describeFlag(yes bool) string {
	if yes {
		return "given"
	}
	return "not given"
}

// describeNotes returns whether records have notes, in words.
func describeNotes(yes bool) string {
	if yes {
		return "with notes (--stapsdt)"
	}
	return "without notes"
}

// flagsOf shows those flags of a section that linkers tell sections of one name
// apart by.
func flagsOf(sec *elfreloc.Section) string {
	return (sec.Flags &^ elf.SHF_GROUP).String()
}

// hasAny reports whether an object has a section that is one of ours.
func hasAny(o *elfreloc.Object, ours func(*elfreloc.Section) bool) bool {
	for i := range o.Sections {
		if ours(&o.Sections[i]) {
			return true
		}
	}
	return false
}

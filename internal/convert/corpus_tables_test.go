package convert

import (
	"debug/elf"
	"strings"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/expect"
)

// withoutStubs drops the symbols that a conversion removes or renames.
func withoutStubs(syms []viewSymbol) []viewSymbol {
	var out []viewSymbol
	for _, s := range syms {
		if (stubID(s.Name) == "" || s.Section != elf.SHN_UNDEF) && !strings.HasPrefix(s.Name, "sdt_") {
			out = append(out, s)
		}
	}
	return out
}

// checkAddrsig: the table of symbols whose addresses matter names the same ones.
func (p *pair) checkAddrsig() {
	for i, s := range p.old.Sections {
		if !isAddrsig(s) {
			continue
		}
		p.seen["addrsig"] = p.seen["addrsig"] || len(p.old.data[i]) > 0
		expect.Equal(p, withoutStubs(p.old.addrsig(p.T, i)), withoutStubs(p.new.addrsig(p.T, i)), "%s", s.Name)
	}
}

// checkGroups: groups keep signature and members, and gain what records their code.
func (p *pair) checkGroups() {
	for i, s := range p.old.Sections {
		if s.Type != elf.SHT_GROUP {
			continue
		}
		p.seen["group"] = true
		now := p.new.Sections[i]
		expect.Equal(p, p.old.symbol(s.Info), p.new.symbol(now.Info), "signature of group %d", i)
		old, new := p.old.groupMembers(i), p.new.groupMembers(i)
		if len(new) < len(old) || !cmp.Equal(old, new[:len(old)]) {
			p.Errorf("members of group %d: %v, want %v and more", i, new, old)
			continue
		}
		for _, m := range new[len(old):] {
			s := p.new.Sections[m]
			name := strings.TrimPrefix(strings.TrimPrefix(s.Name, ".rela"), ".rel")
			if s.Flags&elf.SHF_GROUP == 0 || !strings.Contains(name, "sdt_") && name != ".note.stapsdt" && name != ".note.usdt" && !strings.HasPrefix(name, "my_sites") || int(m) < len(p.old.Sections) {
				p.Errorf("new member of group %d: %s, flags %v", i, s.Name, s.Flags)
			}
		}
	}
}

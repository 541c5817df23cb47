package emit

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"

	"sdtconvert/arch"
)

// sourceText is an assembler that writes source. It keeps to what GNU's assembler and
// clang's both take on every machine: /* */ for comments, %type for types, .8byte
// for words.
type sourceText struct {
	out  bytes.Buffer
	word int // bytes
	nameFaults
}

// newSourceText starts a source, which opens with a comment and the name that its
// object is to give as its source.
func newSourceText(word int, file string, comment ...string) *sourceText {
	t := &sourceText{word: word, nameFaults: nameFaults{defined: map[string]bool{}}}
	t.out.WriteString("/*\n")
	for _, line := range comment {
		t.out.WriteString(" * " + line + "\n")
	}
	t.out.WriteString(" */\n")
	t.line(".file %s", quotedString(file))
	return t
}

// Bytes returns the source.
func (t *sourceText) Bytes() []byte { return t.out.Bytes() }

func (t *sourceText) line(format string, args ...any) { fmt.Fprintf(&t.out, "\t"+format+"\n", args...) }

// name writes a symbol's or section's name, quoted where it has to be. What would end
// the quotes or the line has no place in a source, and neither has @, by which
// assemblers know versions and kinds of references.
func (t *sourceText) name(s string) string {
	plain := s != "" && (s[0] < '0' || s[0] > '9')
	inSection := len(s) > 1 && s[0] == '.' // where - is not an operator
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '-' && inSection, c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z':
		case c < 0x20 || c == 0x7f || c == '"' || c == '\\' || c == '@':
			t.fail(fmt.Errorf("the name %q cannot be written in assembly", s))
			return "_"
		default:
			plain = false
		}
	}
	if plain {
		return s
	}
	return `"` + s + `"`
}

// quotedString writes a string. Bytes other than plain characters are octal.
func quotedString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "\\%03o", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}

func (t *sourceText) Section(s Section) {
	flags := ""
	for _, f := range []struct {
		flag elf.SectionFlag
		char string
	}{{elf.SHF_ALLOC, "a"}, {elf.SHF_WRITE, "w"}, {elf.SHF_EXECINSTR, "x"}} {
		if s.Flags&f.flag != 0 {
			flags += f.char
		}
	}
	group := ""
	if s.Group != "" {
		flags += "G"
		group = "," + t.name(s.Group) + ",comdat"
	}
	typ := "%progbits"
	if s.Type == elf.SHT_NOTE {
		typ = "%note"
	}
	t.out.WriteByte('\n')
	t.line(`.section %s,"%s",%s%s`, t.name(s.Name), flags, typ, group)
	// Instructions are aligned by the assembler, which would fill code for linkers
	// that relax with an alignment to be done again.
	if s.Align > 1 && s.Flags&elf.SHF_EXECINSTR == 0 {
		t.line(".balign %d", s.Align)
	}
}

func (t *sourceText) Symbol(s Symbol) {
	t.checkName(s.Name)
	name := t.name(s.Name)
	bind := ".globl"
	if s.Bind == elf.STB_WEAK {
		bind = ".weak"
	}
	t.line("%s %s", bind, name)
	if s.Hidden {
		t.Hide(s.Name)
	}
	typ := "%object"
	if s.Type == elf.STT_FUNC {
		typ = "%function"
	}
	t.line(".type %s,%s", name, typ)
	t.line(".size %s,%d", name, s.Size)
	fmt.Fprintf(&t.out, "%s:\n", name)
}

// Hide makes a symbol hidden, also one that is not defined here.
func (t *sourceText) Hide(name string) { t.line(".hidden %s", t.name(name)) }

func (t *sourceText) Label(local string) { fmt.Fprintf(&t.out, "%s:\n", local) }

func (t *sourceText) Word(name string, addend int64) {
	t.line(".%dbyte %s", t.word, t.sum(name, addend))
}

// Distance writes the distance of a name plus a number from here, in 4 bytes.
func (t *sourceText) Distance(name string, addend int64) {
	t.line(".4byte %s-.", t.sum(name, addend))
}

func (t *sourceText) sum(name string, addend int64) string {
	switch {
	case name == "":
		return fmt.Sprint(addend)
	case addend == 0:
		return t.name(name)
	}
	return fmt.Sprintf("%s%+d", t.name(name), addend)
}

func (t *sourceText) Int(v uint32)    { t.line(".4byte %d", v) }
func (t *sourceText) String(s string) { t.line(".asciz %s", quotedString(s)) }
func (t *sourceText) Align(n int)     { t.line(".balign %d", n) }

func (t *sourceText) Zero(n int) {
	if n > 0 {
		t.line(".zero %d", n)
	}
}

func (t *sourceText) Insn(i arch.Insn) {
	t.line("%s", i.Source(t.name(i.Symbol)))
}

// Keep writes a relocation that does nothing, by the name that assemblers have
// for it on every machine.
func (t *sourceText) Keep(at, name string) { t.line(".reloc %s,BFD_RELOC_NONE,%s", at, name) }

package ld

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// randomLine is a link: its words as the linker gets them, each item a flag with what
// belongs to it or an input.
type randomLine struct {
	relocatable []item // what is linked with -r first, to relocated.o; nil for nothing
	static      bool
	items       []item
}

type item []string

// dependencies is where some links write what they have read.
const dependencies = "program.d"

// lineMaker makes random lines.
type lineMaker struct {
	*rand.Rand
	*tree
	family    string    // of the linker
	driver    bool      // a compiler gets the line, which reads some words itself
	only      []spelled // the inputs of this line, nil for all
	responses map[string]string
}

func pick[T any](m *lineMaker, of []T) T { return of[m.IntN(len(of))] }

// one reports true once in n times.
func (m *lineMaker) one(n int) bool { return m.IntN(n) == 0 }

// directory returns a random name of a directory, with a slash behind it unless it is "".
func (m *lineMaker) directory(real string) string {
	return strings.ReplaceAll(pick(m, treeDirectories[real]), "ROOT", m.root)
}

// input returns a random name of a random file.
func (m *lineMaker) input() item {
	f := pick(m, m.files())
	if m.one(60) {
		f = pick(m, []spelled{{"", "loop.o"}, {"x/sub", "gone.o"}, {"x", "libq.a"}})
	}
	name := m.directory(f.directory) + f.name
	if strings.HasPrefix(name, "@") {
		name = "./" + name // else a response file
	}
	return item{name}
}

// files returns those that the line is made of.
func (m *lineMaker) files() []spelled {
	if m.only != nil {
		return m.only
	}
	return m.inputs
}

// searched returns a random directory for -L.
func (m *lineMaker) searched() item { return m.searchedIn(pick(m, directories)) }

func (m *lineMaker) searchedIn(real string) item {
	d := m.directory(real)
	if d == "" {
		d = "."
	}
	if m.one(2) {
		d = strings.TrimSuffix(d, "/")
	}
	switch m.IntN(8) {
	case 0:
		return item{"-L", d}
	case 1:
		return item{"--library-path=" + d}
	case 2:
		return item{"-L" + pick(m, []string{"=/x", "=x", "=/own", "$SYSROOT/x", "$SYSROOT/own", "=/x/../own", "=/../x"})}
	}
	return item{"-L" + d}
}

// library returns a random -l.
func (m *lineMaker) library() item {
	name := pick(m, m.libraries)
	if m.only != nil {
		if f := pick(m, m.only); strings.HasPrefix(f.name, "lib") {
			return append(m.searchedIn(f.directory), "-l:"+f.name)
		}
		return m.input()
	}
	if m.one(40) {
		name = "none"
	}
	if name == "r" {
		return item{"--sysroot=sys", "-L=/own", "-lr"}
	}
	if !m.one(5) { // one that is there
		for {
			f := pick(m, m.inputs)
			if base, ok := strings.CutPrefix(f.name, "lib"); ok {
				return append(m.searchedIn(f.directory), "-l"+strings.TrimSuffix(strings.TrimSuffix(base, ".a"), ".so"))
			}
		}
	}
	switch m.IntN(8) {
	case 0:
		return item{"-l", name}
	case 1:
		if m.family != "mold" { // which knows no such flag
			return item{"--library=" + name}
		}
	}
	return item{"-l" + name}
}

// flag returns a random flag that changes what is linked, or how.
func (m *lineMaker) flag() item {
	switch m.IntN(19) {
	case 17:
		return m.newRoot()
	case 15:
		return m.ordering()
	case 16:
		if m.family != "bfd" { // which alone knows abbreviations
			return item{"--no-as-needed"}
		}
		return item{pick(m, []string{"--just-sym", "-just-symb", "--ju"}), m.input()[0]}
	case 0:
		return item{"-Bstatic"}
	case 1:
		return item{"-Bdynamic"}
	case 2:
		return item{"--gc-sections"}
	case 3:
		return item{"--as-needed"}
	case 4:
		return item{"--wrap=which"}
	case 5:
		return item{"--defsym=alias=extra"}
	case 6:
		return item{"--defsym", "alias=which"}
	case 7:
		return item{"--sysroot=" + pick(m, []string{"sys", "sys/", "link/../../sys", m.root + "/sys", "ls/../../sys/"})}
	case 8:
		return item{"-u", "which"}
	case 9:
		return item{"--allow-multiple-definition"}
	case 10:
		return item{"-static"}
	case 11:
		return item{"--just-symbols=" + m.input()[0]}
	case 12:
		return item{"-nostdlib"}
	case 13:
		return item{pick(m, []string{"-R", "--just-symbols"}), m.input()[0]}
	case 14:
		return item{pick(m, []string{"-dn", "-dy", "-non_shared", "-call_shared"})}
	}
	return item{"--no-as-needed"}
}

// ordering returns a flag that has sections ordered by a file, whose patterns match the words of
// inputs in none of the linkers, or by symbols.
func (m *lineMaker) ordering() item {
	switch m.family {
	case "gold":
		m.responses["order"] = pick(m, []string{".text.which\n.text.extra\n", ".text*\n", ".data\n.text\n"})
		return item{"--section-ordering-file", "order"}
	case "lld":
		m.responses["order"] = pick(m, []string{"which\nextra\nmain\n", "extra\n", "b.o:which\n"})
		return item{"--symbol-ordering-file=order", "--no-warn-symbol-ordering"}
	}
	return item{"--as-needed"}
}

// newRoot returns a flag below whose directory the linker finds absolute paths, and perhaps one.
func (m *lineMaker) newRoot() item {
	if m.family != "lld" && m.family != "mold" { // which alone know it
		return item{"--no-as-needed"}
	}
	it := item{"--chroot=" + pick(m, []string{"new-root", m.root + "/new-root", "/"})}
	if m.one(2) {
		it = append(it, "/"+pick(m, []string{"b.o", "x/c.o", "libm.a"}))
	}
	return it
}

// some are random items, in groups now and then.
func (m *lineMaker) some(n int) []item {
	var all []item
	for range n {
		switch m.IntN(18) {
		case 0:
			if m.one(2) {
				all = m.grouped(all, "-(", "-)")
				continue
			}
			all = m.grouped(all, "--start-group", "--end-group")
		case 1:
			all = m.grouped(all, "--whole-archive", "--no-whole-archive")
		case 2:
			all = m.grouped(all, "--push-state", "--pop-state")
		case 3:
			if m.family == "bfd" { // which has neither
				continue
			}
			all = m.grouped(all, "--start-lib", "--end-lib")
		case 4, 5:
			all = append(all, m.flag())
		case 6, 7, 8:
			all = append(all, m.searched())
		case 9, 10, 11:
			all = append(all, m.library())
		case 12:
			all = append(all, m.binary())
		case 14:
			all = append(all, m.script())
		case 13:
			if len(all) > 0 { // the same once more
				all = append(all, pick(m, all))
			}
		default:
			all = append(all, m.input())
		}
	}
	return all
}

// script returns a linker script in a random directory that names inputs.
func (m *lineMaker) script() item {
	var words []string
	for range 1 + m.IntN(3) {
		words = append(words, m.scriptWord())
	}
	text := pick(m, []string{"INPUT", "GROUP"}) + "(" + strings.Join(words, pick(m, []string{" ", " , ", " /* , */ "})) + ")\n"
	if (m.family == "bfd" || m.family == "lld") && m.one(4) {
		m.responses["inc.ld"] = "INPUT(" + m.scriptWord() + ")\n"
		text += "INCLUDE " + pick(m, []string{"inc.ld\n", "\"inc.ld\"\n"})
	}
	if m.family != "mold" && m.one(3) {
		text = "SEARCH_DIR(" + pick(m, []string{"x/sub", "link", `"x"`, "=/own", "sys/own", m.root + "/other"}) + ")\n" + text
	}
	real := pick(m, directories)
	m.responses[real+"/random.ld"] = text
	name := m.directory(real) + "random.ld"
	if m.family == "lld" && m.one(5) { // others take it for the whole layout
		return item{"-T", name}
	}
	return item{name}
}

// scriptWord returns what a script names. gold looks for a name with a slash next to the script only, and mold 1.10 finds files there
// only if it is a later script.
func (m *lineMaker) scriptWord() string {
	var plain []spelled
	for _, f := range m.files() {
		if base, ext, _ := strings.Cut(f.name, "."); (ext == "o" || ext == "a") && strings.Trim(base, "abcdefghijklmnopqrstuvwxyz") == "" {
			plain = append(plain, f)
		}
	}
	if plain == nil || m.one(4) {
		return pick(m, []string{"-lm", "-la", "-l:b.o", "-l:libm.a", "b.o"})
	}
	f := pick(m, plain)
	name := m.directory(f.directory) + f.name
	if m.family == "gold" || m.family == "mold" {
		name = m.root + "/" + f.directory + "/" + f.name
	}
	if strings.Contains(name, " ") || m.one(3) {
		name = `"` + name + `"`
	}
	if m.one(5) {
		name = "AS_NEEDED(" + name + ")"
	}
	return name
}

// binary returns a file that is linked as it is, which may be an object. What is behind
// --pop-state is so only to some linkers.
func (m *lineMaker) binary() item {
	back := "--format=elf"
	if m.family == "bfd" {
		back = "--format=default"
	}
	if m.family == "bfd" && m.one(4) {
		return item{pick(m, []string{"--form=binary", "-forma=binary"}), m.input()[0], "--form=default"}
	}
	if m.one(2) {
		return item{"--format=binary", m.input()[0], back}
	}
	return item{"--push-state", "--format=binary", m.input()[0], "--pop-state", m.input()[0], back}
}

func (m *lineMaker) grouped(all []item, begin, end string) []item {
	all = append(all, item{begin})
	for range 1 + m.IntN(3) {
		if m.one(3) {
			all = append(all, m.library())
		} else {
			all = append(all, m.input())
		}
	}
	return append(all, item{end})
}

// line returns a random line of a whole link.
func (m *lineMaker) line() randomLine {
	m.responses = map[string]string{}
	l := randomLine{static: m.one(8)}
	l.items = append(l.items, item{pick(m, m.main)}, item{"stubs.o"})
	if m.one(3) { // all probes are in files of one kind
		m.only = slices.Concat(pick(m, m.tree.only), m.unprobed)
	} else {
		l.items = append(l.items, item{"wrap.o"})
	}
	if !l.static { // a program with an interpreter has to need a library
		l.items = append(l.items, item{"dso/libbase.so"})
	}
	m.Shuffle(len(l.items), func(i, j int) { l.items[i], l.items[j] = l.items[j], l.items[i] })
	for range m.IntN(4) {
		l.items = append(l.items, m.searched())
	}
	l.items = append(l.items, m.some(2+m.IntN(8))...)
	if m.one(8) {
		m.Shuffle(len(l.items), func(i, j int) { l.items[i], l.items[j] = l.items[j], l.items[i] })
	}
	if m.one(5) {
		for range 1 + m.IntN(3) {
			l.relocatable = append(l.relocatable, m.input())
		}
		l.items = append(l.items, item{"relocated.o"})
	}
	if m.one(4) {
		l.items = append(l.items, item{"--dependency-file=" + dependencies})
	}
	if m.one(4) {
		l.items = m.respond(l.items)
	}
	return l
}

// respond moves some neighbours into a response file.
func (m *lineMaker) respond(items []item) []item {
	from := m.IntN(len(items))
	to := from + 1 + m.IntN(len(items)-from)
	var text strings.Builder
	for _, it := range items[from:to] {
		for _, word := range m.words(it) {
			text.WriteString(m.quote(word) + pick(m, []string{" ", "\n", "\t\n", " \r\n"}))
		}
	}
	name := pick(m, []string{"words", "link/../words", "sp ace/words"})
	if m.family != "mold" && m.one(4) { // which does not read one in another
		m.responses["inner.words"] = text.String()
		text.Reset()
		text.WriteString(m.quote("@inner.words"))
	}
	m.responses[name] = text.String()
	rest := append([]item{{"@" + name}}, items[to:]...)
	return append(items[:from:from], rest...)
}

// quote writes a word for a response file. mold knows a backslash within quotes only,
// so there it stays within.
func (m *lineMaker) quote(word string) string {
	const special = " \t\n'\"\\"
	if !strings.ContainsAny(word, special) && !m.one(6) {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// words returns the words of an item, as a compiler takes them or a linker.
func (m *lineMaker) words(it item) []string {
	if !m.driver || it[0][0] != '-' || strings.HasPrefix(it[0], "-L") && len(it[0]) > 2 || strings.HasPrefix(it[0], "-l") && len(it[0]) > 2 {
		return it
	}
	if m.one(2) {
		var words []string
		for _, word := range it {
			words = append(words, "-Xlinker", word)
		}
		return words
	}
	return []string{"-Wl," + strings.Join(it, ",")}
}

// all returns the words of items.
func (m *lineMaker) all(items []item) []string {
	var words []string
	for _, it := range items {
		words = append(words, m.words(it)...)
	}
	return words
}

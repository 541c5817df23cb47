package machines_test

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// cases are what a machine's directory says of it in testdata/cases.txt, which
// docs/adding-a-machine.md describes. Whatever it leaves out is missed by a test.
type cases struct {
	sites     []*siteCase
	refused   []*siteCase
	branches  []*codeCase
	slots     []*codeCase
	entries   []*codeCase
	jumps     []*codeCase
	loads     []*codeCase
	live      []*codeCase
	dead      []*codeCase
	stubs     []*stubCase
	arguments []argumentCase
	taken     []lineCase
	forms     [arch.Kinds][]*regexp.Regexp // of disabled sites besides those of cases, in hexadecimal
	shown     []lineCase
	names     map[uint32]string // of relocation types
	data      map[string]arch.DataReloc
	types     map[string]uint32 // the other way round, of all types that have a name

	open func(key, value string) error // goes on with the last block
}

// codeCase is code and what is found in it.
type codeCase struct {
	name  string
	pc    uint64
	table uint64 // where the global offset table is
	code  []byte
	asm   string      // "" if not given
	found [][2]uint64 // where, and what it leads to
}

// siteCase is a site before its conversion.
type siteCase struct {
	codeCase
	form     arch.Form
	got      bool
	relocs   []elfreloc.Relocation
	encoding arch.Encoding
	disabled []*disabledCase
	refusal  string // why nothing is disabled
}

// disabledCase is a disabled form of a site.
type disabledCase struct {
	codeCase
	kind   arch.Kind
	env    arch.Context
	record uint64
	target arch.Target
	reloc  elfreloc.Relocation
	low    *elfreloc.Relocation
	error  string // why there is none

	// near is a jump to the return thunk that stands right behind the site, and its
	// relocation from there.
	near      []byte
	nearReloc elfreloc.Relocation
}

type stubCase struct {
	codeCase
	stub arch.Stub
}

// lineCase is code, and what is said of it in one line.
type lineCase struct {
	code []byte
	want string
}

type argumentCase struct {
	form  arch.Form
	sizes []int
	want  string
}

// The names in cases of the return thunk, of the semaphore, and of a helper that loads it.
const (
	thunk     = "thunk"
	semaphore = "semaphore"
	self      = "self"
)

// namedTypes is a number that exceeds the relocation types of all machines.
const namedTypes = 1100

// readCases reads the cases of a machine, which must have some.
func readCases(t testing.TB, m arch.Machine) *cases {
	t.Helper()
	path := filepath.Join("..", filepath.Base(packageOf(m)), "testdata", "cases.txt")
	text := expect.Value(os.ReadFile(path))(t, "a machine brings its own cases")
	c := &cases{names: map[uint32]string{}, data: map[string]arch.DataReloc{}, types: map[string]uint32{}}
	for typ := range uint32(namedTypes) {
		c.types[m.RelocName(typ)] = typ
	}
	others := false // whether the lines are of other machines of the directory
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case key == "only":
			others = value != "" && !slices.ContainsFunc(m.Traits().ABIs, func(a arch.ABI) bool { return fmt.Sprint(a.Flags, " ", a.Data) == value })
			continue
		case others:
			continue
		case key == "words":
			key, value = "code", numbers(t, value, 4, bigCode(m))
		case key == "halfwords":
			key, value = "code", numbers(t, value, 2, bigCode(m))
		case key == "data" && line[0] == '\t':
			key, value = "code", numbers(t, value, 4, m.Traits().ABIs[0].Data == elf.ELFDATA2MSB)
		}
		expect.OK(t, c.add(line[0] == '\t', key, strings.TrimSpace(value)), "%s:%d", path, i+1)
	}
	return c
}

// packageOf returns the directory of a machine, which others may share.
func packageOf(m arch.Machine) string { return reflect.TypeOf(m).PkgPath() }

var errUnknown = fmt.Errorf("is not known")

func (c *cases) add(indented bool, key, value string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %s: %w", key, value, err)
		}
	}()
	switch {
	case !indented:
		return c.begin(key, value)
	case c.open == nil:
		return fmt.Errorf("belongs to nothing")
	}
	return c.open(key, value)
}

// begin begins a block. What belongs to it is indented by a tab.

func (c *cases) begin(key, value string) error {
	c.open = nil
	code := func(list *[]*codeCase) {
		b := &codeCase{name: value}
		*list, c.open = append(*list, b), b.add
	}
	switch key {
	case "site", "refused":
		s := &siteCase{codeCase: codeCase{name: value}}
		c.open = func(key, value string) error { return s.add(c, key, value) }
		if key == "site" {
			c.sites = append(c.sites, s)
		} else {
			c.refused = append(c.refused, s)
		}
	case "disabled":
		if len(c.sites) == 0 {
			return fmt.Errorf("belongs to no site")
		}
		s := c.sites[len(c.sites)-1]
		d := &disabledCase{codeCase: codeCase{name: s.name + " as " + value}}
		s.disabled = append(s.disabled, d)
		c.open = func(key, value string) error { return d.add(c, key, value) }
		return d.begin(value)
	case "stub":
		s := &stubCase{codeCase: codeCase{name: "stub " + value}}
		c.stubs, c.open = append(c.stubs, s), s.add
		return s.begin(value)
	case "branches":
		code(&c.branches)
	case "slots":
		code(&c.slots)
	case "entry":
		code(&c.entries)
	case "jumps":
		code(&c.jumps)
	case "loads":
		code(&c.loads)
	case "live":
		code(&c.live)
	case "dead":
		code(&c.dead)
	case "arguments":
		return c.addArguments(value)
	case "taken":
		return addLine(&c.taken, value)
	case "form":
		form, kind, _ := strings.Cut(value, " = ")
		k, err := kindNamed(kind)
		if err != nil {
			return err
		}
		re, err := regexp.Compile("^(" + strings.ReplaceAll(form, " ", "") + ")$")
		c.forms[k] = append(c.forms[k], re)
		return err
	case "show":
		return addLine(&c.shown, value)
	case "relocation":
		var typ uint32
		var name string
		_, err := fmt.Sscan(value, &typ, &name)
		c.names[typ] = name
		return err
	case "data":
		var name, op string
		var size int
		_, err := fmt.Sscan(value, &name, &size, &op)
		kind := slices.Index([]string{"set", "add", "sub"}, op)
		c.data[name] = arch.DataReloc{Size: size, Op: arch.DataOp(kind)}
		if err == nil && kind < 0 {
			err = errUnknown
		}
		return err
	default:
		return errUnknown
	}
	return nil
}

// add takes a line of code: pc, table, code, asm, or is, for what is found where.
func (b *codeCase) add(key, value string) (err error) {
	switch key {
	case "pc":
		b.pc, err = strconv.ParseUint(value, 0, 64)
	case "table":
		b.table, err = strconv.ParseUint(value, 0, 64)
	case "code":
		var more []byte
		more, err = unhex(value)
		b.code = append(b.code, more...)
	case "asm":
		b.asm = value
	case "is":
		var f [2]uint64
		_, err = fmt.Sscanf(value, "%v %v", &f[0], &f[1])
		b.found = append(b.found, f)
	default:
		err = errUnknown
	}
	return err
}

func unhex(s string) ([]byte, error) { return hex.DecodeString(strings.ReplaceAll(s, " ", "")) }

var formNames = []string{"call", "tail", "cond-tail", "nop"}

func parseForm(s string) (arch.Form, error) {
	i := slices.Index(formNames, s)
	if i < 0 {
		return 0, errUnknown
	}
	return arch.Form(i), nil
}

func (c *cases) reloc(value string) (r elfreloc.Relocation, err error) {
	var name string
	words := strings.Fields(value)
	implicit := len(words) >= 3 && words[2] == "implicit"
	if implicit {
		words = append(slices.Delete(words, 2, 3), "0") // behind the addend, if there is one
	}
	if _, err = fmt.Sscan(strings.Join(words, " "), &name, &r.Offset, &r.Addend); err != nil {
		return r, err
	}
	typ, ok := c.types[name]
	if !ok {
		return r, errUnknown
	}
	r.Type, r.Implicit = typ, implicit
	return r, nil
}

func (s *siteCase) add(c *cases, key, value string) (err error) {
	switch key {
	case "form":
		s.form, err = parseForm(value)
	case "got":
		s.got = true
	case "reloc":
		var r elfreloc.Relocation
		r, err = c.reloc(value)
		s.relocs = append(s.relocs, r)
	case "encoding":
		s.encoding = arch.Encoding(value[0])
	case "error":
		s.refusal = value
	default:
		err = s.codeCase.add(key, value)
	}
	return err
}

// kindNamed returns the kind of one of kindNames.
func kindNamed(name string) (arch.Kind, error) {
	k := slices.Index(kindNames[:], name)
	if k < 0 {
		return 0, fmt.Errorf("unknown kind %q", name)
	}
	return arch.Kind(k), nil
}

func (d *disabledCase) begin(value string) (err error) {
	kind, options, _ := strings.Cut(value, " ")
	for _, word := range strings.Fields(options) {
		switch word {
		case thunk:
			d.env.ReturnThunk = true
		case "armable":
			d.env.Armable = true
		case "semaphore2":
			d.env.SemaphoreBytes = 2
		case "semaphore4":
			d.env.SemaphoreBytes = 4
		default:
			return errUnknown
		}
	}
	d.kind, err = kindNamed(kind)
	return err
}

func (d *disabledCase) add(c *cases, key, value string) (err error) {
	switch key {
	case "record":
		d.record, err = strconv.ParseUint(value, 0, 64)
	case "to":
		target, reloc, _ := strings.Cut(value, " ")
		i := slices.Index([]string{"", "thunk", "helper", "test", "semaphore"}, target)
		if i < 1 {
			return errUnknown
		}
		d.target = arch.Target(i)
		d.reloc, err = c.reloc(reloc)
	case "low":
		var r elfreloc.Relocation
		r, err = c.reloc(value)
		d.low = &r
	case "near":
		d.near, err = unhex(value)
	case "near-reloc":
		d.nearReloc, err = c.reloc(value)
	case "error":
		d.error = value
	default:
		err = d.codeCase.add(key, value)
	}
	return err
}

func (s *stubCase) begin(value string) (err error) {
	kind, options, _ := strings.Cut(value, " ")
	for _, word := range strings.Fields(options) {
		switch word {
		case "landing-pad":
			s.stub.LandingPad = true
		case thunk:
			s.stub.Thunk = thunk
		case semaphore:
			s.stub.Semaphore, s.stub.Self = semaphore, self
		default:
			return errUnknown
		}
	}
	s.stub.Kind, err = kindNamed(kind)
	return err
}

// addLine reads code, and behind = what is wanted of it.
func addLine(list *[]lineCase, value string) error {
	before, want, ok := strings.Cut(value, "=")
	code, err := unhex(before)
	if err == nil && !ok {
		err = errUnknown
	}
	*list = append(*list, lineCase{code, strings.TrimSpace(want)})
	return err
}

// addArguments reads a form, sizes, and behind = where the arguments are.
func (c *cases) addArguments(value string) error {
	before, want, ok := strings.Cut(value, "=")
	words := strings.Fields(before)
	if !ok || len(words) == 0 {
		return errUnknown
	}
	form, err := parseForm(words[0])
	if err != nil {
		return err
	}
	a := argumentCase{form: form, want: strings.Join(strings.Fields(want), " ")}
	for _, w := range words[1:] {
		n, err := strconv.Atoi(w)
		if err != nil {
			return err
		}
		a.sizes = append(a.sizes, n)
	}
	c.arguments = append(c.arguments, a)
	return nil
}

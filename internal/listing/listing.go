// Package listing lists the probes of objects, linked images and processes: it reads
// their records, and gathers the sites of each probe and function in one line of a
// table. docs/output.md has its rules, and describes its JSON.
package listing

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
	"sdtconvert/internal/regular"
	"sdtconvert/internal/sites"
)

// Version counts the incompatible changes of the JSON.
const Version = 2

// Document is the JSON of a run.
type Document struct {
	Version int        `json:"version"`
	Images  []*Listing `json:"images"`
	Unread  []Unread   `json:"unread,omitempty"` // of a whole system
}

// Listing is what one image says of its probes.
type Listing struct {
	Image   string   `json:"image"` // the path, or lib.a(member.o)
	Machine string   `json:"machine"`
	Probes  []*Probe `json:"probes"` // in the order of their first sites
	Errors  []string `json:"errors,omitempty"`

	transient bool // an error may be gone when a loader has done its work
}

// Probe is a probe of one function.
type Probe struct {
	Number    int        `json:"id"` // of the run's lines; the printer counts them
	Provider  string     `json:"provider"`
	Module    string     `json:"module"`
	Function  string     `json:"function"`
	Name      string     `json:"name"`
	Arguments []Argument `json:"arguments,omitempty"`
	Sites     []Site     `json:"sites"` // by address
}

// Argument is the type of an argument, as the definition of the probe has it.
type Argument struct {
	Index      int    `json:"index"`
	Native     string `json:"native"`
	Translated string `json:"translated,omitempty"` // "" when the type is not translated
}

// Site is a place that reaches a probe.
type Site struct {
	Address string `json:"address"`           // hexadecimal: JSON's numbers are too short
	Section string `json:"section,omitempty"` // that Address is an offset in; "" in an image
	locate.Place
	Kind  string `json:"kind"`  // as arch.Describe has it
	State string `json:"state"` // as package sites has it
	// Operands say where the arguments are, as the site's note has them; "" without a note.
	Operands string `json:"operands,omitempty"`
	// Semaphore is the one that tracers raise for the site, or that an is-enabled test
	// loads; nil where there is none.
	Semaphore *Semaphore `json:"semaphore,omitempty"`
}

// Semaphore counts the tracers of a probe. An object may leave it to the linker: then only
// its symbol is known.
type Semaphore struct {
	Address string  `json:"address,omitempty"` // hexadecimal
	Section string  `json:"section,omitempty"` // that Address is an offset in; "" in an image
	Symbol  string  `json:"symbol,omitempty"`  // "" where none is left
	Value   *uint16 `json:"value,omitempty"`   // nil where it cannot be read
}

func (p *Probe) String() string {
	return fmt.Sprintf("%s:%s:%s:%s", message.OrDash(p.Provider), p.Module, p.Function, message.OrDash(p.Name))
}

// Options say what is listed.
type Options struct {
	sites.Conventions
	Places     locate.Options
	FollowThin bool // files outside of the directory of a thin archive
	Filter     Filter
	Semaphores bool // of sites; without them there are no warnings of notes
}

func newListing(image string) *Listing { return &Listing{Image: image, Probes: []*Probe{}} }

func (l *Listing) fail(err error) {
	l.Errors = append(l.Errors, err.Error())
	l.transient = l.transient || !regular.IsLimit(err)
}

// Pattern matches the four parts of a probe's name. A part that is "" matches
// anything, others are globs as dtrace(1) has them. Compile has to come before Match.
type Pattern struct{ Provider, Module, Function, Name string }

// Filter selects probes: those that match All, and any of Alternatives if there
// are some.
type Filter struct {
	All          Pattern
	Alternatives []Pattern
}

// Match reports whether a filter selects a probe.
func (f *Filter) Match(p *Probe) bool {
	if !f.All.Match(p.Provider, p.Module, p.Function, p.Name) {
		return false
	}
	for _, a := range f.Alternatives {
		if a.Match(p.Provider, p.Module, p.Function, p.Name) {
			return true
		}
	}
	return len(f.Alternatives) == 0
}

// Match reports whether a pattern matches the name of a probe. In the last part __ matches -, as sources and other tracers write it.
func (t Pattern) Match(provider, module, function, name string) bool {
	return glob(t.Provider, provider) && glob(t.Module, module) && glob(t.Function, function) &&
		(glob(t.Name, name) || strings.Contains(t.Name, "__") && glob(strings.ReplaceAll(t.Name, "__", "-"), name))
}

// glob matches a part that was compiled. To path.Match a slash is special, which
// it is not in the name of a probe.
func glob(part, s string) bool {
	if part == "" {
		return true
	}
	ok, err := path.Match(part, strings.ReplaceAll(s, "/", "\x00"))
	return ok && err == nil
}

// Pattern returns the text of a pattern that matches the name, in one word: ParsePattern reads it, and
// check --require. A part that is not known is empty. A character that means something else in a pattern or
// in a list of patterns becomes a question mark, which matches any one. A library of any version matches.
func (p *Probe) Pattern() string {
	parts := []string{p.Provider, p.Module, p.Function, p.Name}
	for i, part := range parts {
		if part == "-" { // message.OrDash
			part = ""
		}
		parts[i] = strings.Map(func(r rune) rune {
			if strings.ContainsRune(`:*?[\#`, r) || r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
				return '?'
			}
			return r
		}, part)
	}
	if library := soVersion().FindStringIndex(parts[1]); library != nil {
		parts[1] = parts[1][:library[0]] + ".so*"
	}
	return strings.Join(parts, ":")
}

// soVersion is how the name of a shared library with a version ends.
var soVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\.so(\.[0-9]+)+$`) })

// Compile writes the globs of dtrace(1) as path.Match has them, where [^...] is
// a class of what does not match. An error says which part is none.
func (t *Pattern) Compile() error {
	writer := strings.NewReplacer("/", "\x00", "[!", "[^")
	for _, part := range []*string{&t.Provider, &t.Module, &t.Function, &t.Name} {
		compiled := writer.Replace(*part)
		if _, err := path.Match(compiled, ""); err != nil {
			return fmt.Errorf("%q is not a glob", *part)
		}
		*part = compiled
	}
	return nil
}

// LiteralName returns the name of the probes that match a pattern, "" if they may have several.
func (t Pattern) LiteralName() string {
	if strings.ContainsAny(t.Name, "*?[\\\x00") || strings.Contains(t.Name, "__") {
		return ""
	}
	return t.Name
}

// ParsePattern reads provider:module:function:name, and compiles it. As for
// dtrace(1), parts on the left may be missing. With all four parts, a function may have a namespace.
func ParsePattern(s string) (Pattern, error) {
	parts := strings.Split(s, ":")
	if last := len(parts) - 1; last > 3 { // the function may have a :: of C++ or Rust
		if function := strings.Join(parts[2:last], ":"); !strings.Contains(strings.ReplaceAll(function, "::", ""), ":") {
			parts = []string{parts[0], parts[1], function, parts[last]}
		}
	}
	if len(parts) > 4 {
		return Pattern{}, fmt.Errorf("%q has more than the four parts provider:module:function:name", s)
	}
	parts = append(make([]string, 4-len(parts)), parts...)
	t := Pattern{parts[0], parts[1], parts[2], parts[3]}
	return t, t.Compile()
}

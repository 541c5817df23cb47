package main

import (
	"os"
	"path"
	"strings"
)

// pattern matches the four parts of a probe's name. A part that is "" matches
// anything, others are globs as dtrace(1) has them.
type pattern struct{ provider, module, function, name string }

// filter selects probes: those that match all, and any of alternatives if there
// are some.
type filter struct {
	all          pattern
	alternatives []pattern
}

func (f *filter) match(p *listedProbe) bool {
	if !f.all.match(p) {
		return false
	}
	for _, a := range f.alternatives {
		if a.match(p) {
			return true
		}
	}
	return len(f.alternatives) == 0
}

func (t pattern) match(p *listedProbe) bool {
	return glob(t.provider, p.Provider) && glob(t.module, p.Module) && glob(t.function, p.Function) && glob(t.name, p.Name)
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

// compile writes the globs of dtrace(1) as path.Match has them, where [^...] is
// a class of what does not match.
func (t *pattern) compile() error {
	writer := strings.NewReplacer("/", "\x00", "[!", "[^")
	for _, part := range []*string{&t.provider, &t.module, &t.function, &t.name} {
		compiled := writer.Replace(*part)
		if _, err := path.Match(compiled, ""); err != nil {
			return usagef("%q is no glob", *part)
		}
		*part = compiled
	}
	return nil
}

// parsePattern reads provider:module:function:name. As for dtrace(1), parts on
// the left may be missing.
func parsePattern(s string) (pattern, error) {
	parts := strings.Split(s, ":")
	if len(parts) > 4 {
		return pattern{}, usagef("%q has more than the four parts provider:module:function:name", s)
	}
	parts = append(make([]string, 4-len(parts)), parts...)
	t := pattern{parts[0], parts[1], parts[2], parts[3]}
	return t, t.compile()
}

// splitProbes divides arguments into descriptions of probes and files: a
// description has a colon, and is not the name of a file.
func splitProbes(args []string) (patterns []pattern, files []string, err error) {
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil || !strings.Contains(arg, ":") {
			files = append(files, arg)
			continue
		}
		t, err := parsePattern(arg)
		if err != nil {
			return nil, nil, err
		}
		patterns = append(patterns, t)
	}
	return patterns, files, nil
}

package output

// Sites of providers' probes are collected from the objects of a link, as
// DTrace's object format knows them.
//
// A stub's name, one of dtrace.Names, tells its probe.

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/dtrace"
	"sdtconvert/internal/input"
	"sdtconvert/internal/provider"
	"sdtconvert/patch"
)

// prefixes of stubs, by kind: DTrace's first.
var prefixes = [arch.Kinds][]string{
	arch.Probe:   dtrace.Names().Prefixes,
	arch.Enabled: dtrace.Names().EnabledPrefixes,
}

// separator is what stands between the names of a provider and of a probe.
const separator = "___"

// ProbeSites are the sites of the probes of some providers.
type ProbeSites struct {
	providers []*provider.Provider
	aliases   dtrace.Aliases
	options   patch.Options
	functions map[*provider.Probe][]*function
	known     map[functionKey]*function // these, without their names
	// UnarmableTests are the objects with tests that DTrace does not arm, in their order.
	UnarmableTests []string
}

// function is a function with sites of a probe, and the object that they are in.
type function struct {
	dof.Function
	object string
}

// functionKey tells the functions with sites of a probe apart.
type functionKey struct {
	probe        *provider.Probe
	symbol, name string
}

// NewProbeSites makes an empty set, for objects that are converted so.
func NewProbeSites(providers []*provider.Provider, aliases dtrace.Aliases) *ProbeSites {
	s := &ProbeSites{providers: providers, aliases: aliases, options: aliases.Options(), functions: map[*provider.Probe][]*function{}, known: map[functionKey]*function{}}
	// A provider may be called isenabled_x. The longest prefix of a name counts.
	for _, p := range providers {
		s.options.Names.Prefixes = append(s.options.Names.Prefixes, prefixes[arch.Probe][0]+p.Name+separator)
	}
	return s
}

// Options returns how the objects are converted.
func (s *ProbeSites) Options() patch.Options { return s.options }

// Add adds the sites of a file, converted or not: an object, or an archive of some. What
// is neither, and holds no probes, has none. Where there are errors, they are joined.
func (s *ProbeSites) Add(path string) error {
	return input.Each(path, input.Options{FollowThin: true}, func(src *input.Source) error {
		o, err := src.Relocatable(s.options.StubTexts())
		if errors.Is(err, input.ErrSkipped) {
			return nil
		}
		if err != nil {
			return err
		}
		return s.add(o.Object)
	})
}

func (s *ProbeSites) add(o *elfreloc.Object) error {
	plan, err := patch.Examine(o, s.options)
	if err != nil {
		return err
	}
	faults := plan.Errors()
	for _, ref := range plan.Scan.Calls {
		if s.probe(ref.Stub) == nil {
			faults = append(faults, s.unknown(plan, &ref))
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	found, err := s.aliases.Sites(plan)
	if err != nil {
		return err
	}
	if len(found) < len(plan.Sites) {
		s.UnarmableTests = append(s.UnarmableTests, o.Name)
	}
	return s.merge(o.Name, found)
}

// probe finds the probe that a stub is of, nil where the providers have none.
func (s *ProbeSites) probe(stub *patch.Stub) *provider.Probe {
	for _, prefix := range prefixes[stub.Kind] {
		for _, p := range s.providers {
			name, ok := strings.CutPrefix(stub.Name, prefix+p.Name+separator)
			if !ok {
				continue
			}
			if i := slices.IndexFunc(p.Probes, func(q *provider.Probe) bool { return q.Name == name }); i >= 0 {
				return p.Probes[i]
			}
		}
	}
	return nil
}

func (s *ProbeSites) unknown(plan *patch.Plan, ref *patch.Reference) error {
	where := ""
	if functions, err := plan.Scan.Functions(); err == nil {
		if place := functions.Place(ref.Relocs.Target, ref.Reloc.Offset); place != "" {
			where = "in " + place + ": "
		}
	}
	return plan.Scan.Object.OffsetError(ref.Relocs.Target, ref.Reloc.Offset,
		fmt.Errorf("%sno provider file has a probe of %q; give the file that declares it with another -s", where, ref.Stub.Name))
}

// merge adds the sites of an object.
func (s *ProbeSites) merge(object string, found []dtrace.Site) error {
	byProbe := map[*provider.Probe][]*function{}
	byKey := map[functionKey]*function{}
	for i := range found {
		f := &found[i]
		probe := s.probe(f.Stub)
		key := functionKey{probe, f.Alias, f.Function}
		merged := byKey[key]
		if merged == nil {
			merged = &function{Function: dof.Function{Name: f.Function, Symbol: f.Alias}, object: object}
			byKey[key] = merged
			byProbe[probe] = append(byProbe[probe], merged)
		}
		if f.Stub.Kind == arch.Enabled {
			merged.Enabled = append(merged.Enabled, f.Offset)
		} else {
			merged.Offsets = append(merged.Offsets, f.Offset)
		}
	}
	for _, p := range s.providers {
		for _, probe := range p.Probes {
			for _, f := range byProbe[probe] {
				if err := s.mergeFunction(probe, f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// mergeFunction adds a function, unless another object has it as well: a weak one, of
// which the linker keeps which it likes.
func (s *ProbeSites) mergeFunction(probe *provider.Probe, f *function) error {
	key := functionKey{probe: probe, symbol: f.Symbol}
	if have := s.known[key]; have != nil {
		if !slices.Equal(have.Offsets, f.Offsets) || !slices.Equal(have.Enabled, f.Enabled) {
			return &elfreloc.Error{File: f.object, Err: fmt.Errorf(
				"function %s has its sites of probe %s elsewhere than in %s, and linkers keep one of the two; compile both with the same flags", f.Name, probe.Name, have.object)}
		}
		return nil
	}
	s.known[key] = f
	s.functions[probe] = append(s.functions[probe], f)
	return nil
}

// Providers returns the providers that have sites, with the probes that have some. Names
// of functions are cut to less than a number of bytes, the NUL among them.
func (s *ProbeSites) Providers(function int) []dof.Provider {
	var all []dof.Provider
	for _, p := range s.providers {
		out := dof.Provider{Name: p.Name}
		for i, a := range p.Attributes {
			out.Attributes[i] = dof.Attribute(a)
		}
		for _, probe := range p.Probes {
			if len(s.functions[probe]) > 0 {
				out.Probes = append(out.Probes, s.describe(probe, function))
			}
		}
		if len(out.Probes) > 0 {
			all = append(all, out)
		}
	}
	return all
}

func (s *ProbeSites) describe(probe *provider.Probe, longest int) dof.Probe {
	out := dof.Probe{Name: strings.ReplaceAll(probe.Name, "__", "-")}
	translated := probe.Translated
	if translated == nil {
		translated = probe.Args
	}
	for _, a := range probe.Args {
		out.Native = append(out.Native, a.Type)
	}
	for i, from := range probe.Mapping() {
		out.Translated = append(out.Translated, translated[i].Type)
		out.Mapping = append(out.Mapping, byte(from))
	}
	for _, f := range s.functions[probe] {
		g := f.Function
		g.Name = g.Name[:min(len(g.Name), longest-1)]
		out.Functions = append(out.Functions, g)
	}
	return out
}

package output

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/dof"
	"sdtconvert/internal/dtrace"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

func probes(name string, names ...string) *provider.Provider {
	p := &provider.Provider{Name: name}
	for _, probe := range names {
		p.Probes = append(p.Probes, &provider.Probe{Name: probe})
	}
	return p
}

// object assembles calls of stubs, each in a function of its own unless it has a name for
// one: "f:stub".
func object(t *testing.T, stubs ...string) string {
	t.Helper()
	tools.Need(t, "as")
	var text strings.Builder
	for i, stub := range stubs {
		name, stub, named := strings.Cut(stub, ":")
		if !named {
			name, stub = string(rune('a'+i)), name
		}
		bind := ".globl "
		if strings.HasPrefix(name, "weak") {
			bind = ".weak "
		}
		if strings.HasPrefix(name, "weakfar") {
			name = name[:4]
			stub = "nop; call " + stub
		} else {
			stub = "call " + stub
		}
		text.WriteString(bind + name + "\n.type " + name + ",@function\n" + name + ": " + stub + "\n ret\n.size " + name + ",.-" + name + "\n")
	}
	path := filepath.Join(t.TempDir(), "x.s")
	disk.Write(t, path, text.String())
	tools.Must(t, "as", "--64", "-o", path+".o", path)
	return path + ".o"
}

// shape returns what is told of probes: provider:probe, and functions with the number of
// sites and of tests.
func shape(s *ProbeSites) (all []string) {
	for _, p := range s.Providers(128) {
		for _, probe := range p.Probes {
			text := p.Name + ":" + probe.Name
			for _, f := range probe.Functions {
				text += " " + f.Name + strings.Repeat("+", len(f.Offsets)) + strings.Repeat("?", len(f.Enabled))
			}
			all = append(all, text)
		}
	}
	return all
}

// Which probe a stub is of is told by the providers that there are.
func TestSiteNames(t *testing.T) {
	for _, c := range []struct {
		providers []*provider.Provider
		stubs     []string
		want      []string
	}{
		{[]*provider.Provider{probes("p", "a__b", "x")}, []string{"__dtrace_p___a__b", "__dtraceenabled_p___a__b", "__dtrace_probe_p___x", "__dtrace_isenabled_p___x"}, []string{"p:a-b a+ b?", "p:x c+ d?"}},
		{[]*provider.Provider{probes("p", "x"), probes("probe_p", "x")}, []string{"__dtrace_p___x", "__dtrace_probe_p___x"}, []string{"p:x a+", "probe_p:x b+"}},
		{[]*provider.Provider{probes("isenabled_p", "x")}, []string{"__dtrace_isenabled_p___x", "__dtraceenabled_isenabled_p___x"}, []string{"isenabled_p:x a+ b?"}},
		{[]*provider.Provider{probes("p", "_x"), probes("p_", "x")}, []string{"__dtrace_p____x"}, []string{"p:_x a+"}},
		{[]*provider.Provider{probes("p_", "x"), probes("q")}, []string{"__dtrace_p____x", "f:__dtrace_p____x", "other"}, []string{"p_:x a+ f+"}},
	} {
		s := NewProbeSites(c.providers, dtrace.Aliases{})
		if err := s.Add(object(t, c.stubs...)); err != nil {
			t.Errorf("%q: %v", c.stubs, err)
			continue
		}
		expect.Equal(t, c.want, shape(s), "%q", c.stubs)
	}
}

func TestUnknownProbes(t *testing.T) {
	s := NewProbeSites([]*provider.Provider{probes("p", "x")}, dtrace.Aliases{})
	for _, stub := range []string{"__dtrace_p___y", "__dtrace_q___x", "__dtraceenabled_p__x", "__dtrace_x"} {
		want := `: .text+0x1: in a+0x1: no provider file has a probe of "` + stub + `"; give the file that declares it with another -s`
		if err := s.Add(object(t, stub)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got := shape(s); got != nil {
		t.Errorf("%q", got)
	}
}

// A weak function of several objects is told of once, and not at all where its sites are
// here or there.
func TestWeakFunctions(t *testing.T) {
	s := NewProbeSites([]*provider.Provider{probes("p", "x")}, dtrace.Aliases{})
	one, two, other := object(t, "weak:__dtrace_p___x"), object(t, "weak:__dtrace_p___x"), object(t, "weakfar:__dtrace_p___x")
	for _, path := range []string{one, two} {
		expect.OK(t, s.Add(path))
	}
	expect.Equal(t, []string{"p:x weak+"}, shape(s))
	want := "function weak has its sites of probe x elsewhere than in " + one + ", and linkers keep one of the two; compile both with the same flags"
	if err := s.Add(other); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Names of functions are cut to what a kernel has room for, those of symbols are not.
func TestLongNames(t *testing.T) {
	name := "f" + strings.Repeat("x", 200)
	s := NewProbeSites([]*provider.Provider{probes("p", "x")}, dtrace.Aliases{})
	expect.OK(t, s.Add(object(t, name+":__dtrace_p___x")))
	f := s.Providers(128)[0].Probes[0].Functions[0]
	if diff := cmp.Diff(dof.Function{Name: name[:127], Symbol: f.Symbol, Offsets: []uint32{0}}, f); diff != "" || !strings.HasSuffix(f.Symbol, name) {
		t.Error(diff)
	}
}

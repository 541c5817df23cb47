package probedefs

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
)

// sources define probes; those of clash.c otherwise than define.c.
var sources = map[string]string{
	"define.c": `#include <sdt.h>
SDT_PROVIDER_DEFINE(icmp);
SDT_PROBE_DEFINE2(icmp, kernel, unreach, pkt__receive, "int", "char *");
SDT_PROBE_DEFINE1(icmp, kernel, unreach, pkt__send, "int");
`,
	"elsewhere.c": `#include <sdt.h>
SDT_PROVIDER_DECLARE(tcp__ip);
SDT_PROBE_DEFINE1(tcp__ip, , state, change, "long");
`,
	"clash.c": `#include <sdt.h>
SDT_PROVIDER_DECLARE(icmp);
SDT_PROBE_DEFINE2(icmp, kernel, unreach, pkt__receive, "long", "char *");
SDT_PROBE_DEFINE1(icmp, kernel, unreach, pkt__send, "int");
`,
	"none.c": "char sdt_plain[8]; int sdt_function(void) { return 1; }\nstatic char sdt_static[96] = { 96 };\nchar *use(void) { return sdt_static; }\n",
}

// compile compiles the sources for a machine, and returns the objects by their names.
func compile(t *testing.T, m *toolchains.Machine) map[string]string {
	t.Helper()
	dir, objects := t.TempDir(), map[string]string{}
	command := m.CC(toolchains.GCC)
	tools.Need(t, command[0], m.Tool("ar"))
	for name, text := range sources {
		source := filepath.Join(dir, name)
		disk.Write(t, source, text)
		out := source[:len(source)-1] + "o"
		tools.Must(t, command[0], append(command[1:], "-O2", "-fPIC", "-I"+tools.Root("include"), "-c", source, "-o", out)...)
		objects[name[:len(name)-2]] = out
	}
	objects["archive"] = filepath.Join(dir, "archive.a")
	tools.Must(t, m.Tool("ar"), "rcs", objects["archive"], objects["clash"])
	objects["library"] = filepath.Join(dir, "library.so")
	tools.Must(t, command[0], append(command[1:], "-shared", "-nostdlib", "-s", "-Wl,-z,undefs", objects["clash"], "-o", objects["library"])...)
	return objects
}

const (
	receive = "icmp_kernel_unreach_pkt__receive"
	send    = "icmp_kernel_unreach_pkt__send"
	change  = "tcp__ip__state_change"
)

func icmp(name string, types ...string) linkerset.Probe {
	p := linkerset.Probe{Provider: "icmp", Module: "kernel", Function: "unreach", Name: name, FromStruct: true}
	for i, native := range types {
		p.Args = append(p.Args, linkerset.Argument{Index: i, Native: native})
	}
	return p
}

func TestDefinitions(t *testing.T) {
	for _, m := range toolchains.Machines {
		t.Run(m.Name, func(t *testing.T) {
			o := compile(t, m)
			for _, c := range []struct {
				name    string
				files   []string
				receive linkerset.Probe
			}{
				{"objects", []string{o["define"], o["elsewhere"], o["none"], "missing.o"}, icmp("pkt-receive", "int", "char *")},
				{"an archive alone", []string{o["archive"]}, icmp("pkt-receive", "long", "char *")},
				{"a library", []string{o["library"], o["none"]}, icmp("pkt-receive", "long", "char *")},
				{"an object before an archive", []string{o["archive"], o["define"]}, icmp("pkt-receive", "int", "char *")},
				{"an object before a library", []string{o["define"], o["library"]}, icmp("pkt-receive", "int", "char *")},
				{"the same twice", []string{o["define"], o["define"]}, icmp("pkt-receive", "int", "char *")},
			} {
				for _, jobs := range []int{1, 4} {
					for range 2 {
						c.receive.ID = receive
						got, ok, err := New(c.files, Options{ProbePrefix: "sdt_", Jobs: jobs}).Probe(receive)
						if diff := cmp.Diff(c.receive, got); !ok || err != nil || diff != "" {
							t.Errorf("%s: %t, %v, %s", c.name, ok, err, diff)
						}
						slices.Reverse(c.files)
					}
				}
			}
			all := New([]string{o["define"], o["elsewhere"], o["none"]}, Options{ProbePrefix: "sdt_", Jobs: 2})
			if all.read.Do(all.readFiles); len(all.probes) != 3 {
				t.Errorf("%d probes: %v", len(all.probes), all.probes)
			}
			got, ok, err := all.Probe(change)
			want := linkerset.Probe{ID: change, Provider: "tcp-ip", Function: "state", Name: "change", FromStruct: true, Args: []linkerset.Argument{{Native: "long"}}}
			if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
				t.Errorf("%t, %v, %s", ok, err, diff)
			}
			if alone := New([]string{o["define"]}, Options{ProbePrefix: "sdt_", Jobs: 2}); len(alone.probes) != 0 {
				t.Errorf("of one object: %v", alone.probes)
			}
		})
	}
}

func TestDefinitionsThatDisagree(t *testing.T) {
	o := compile(t, toolchains.AMD64)
	for _, files := range [][]string{{o["define"], o["clash"]}, {o["clash"], o["library"], o["define"], o["archive"]}} {
		table := New(files, Options{ProbePrefix: "sdt_", Jobs: 2})
		types := map[string]string{o["define"]: "int, char *", o["clash"]: "long, char *"}
		first, last := files[0], o["clash"]
		if first == last {
			last = o["define"]
		}
		want := `probe "` + receive + `" is icmp:kernel:unreach:pkt-receive(` + types[first] + `) in ` + first +
			` and icmp:kernel:unreach:pkt-receive(` + types[last] + `) in ` + last + `; convert what belongs together by itself`
		if _, ok, err := table.Probe(receive); ok || err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, ok, err := table.Probe(send); !ok || err != nil {
			t.Errorf("%s, of which all say the same: %t, %v", send, ok, err)
		}
	}
	if _, ok, err := New(nil, Options{ProbePrefix: "sdt_", Jobs: 2}).Probe(receive); ok || err != nil {
		t.Errorf("of no files: %t, %v", ok, err)
	}
}

package amd64

import (
	"bytes"
	"debug/elf"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

var kinds = []arch.Kind{arch.Probe, arch.Enabled}

var environments = []arch.Context{{}, {Armable: true}}

// disabledText returns the disabled form of a site between the bytes around it.
func disabledText(t *testing.T, f form, k arch.Kind, env arch.Context, before, after []byte) (arch.Text, arch.Change) {
	t.Helper()
	const start = 0x200
	site := arch.Site{Offset: start + uint64(len(before)), Form: f.form, Register: true, Code: unhex(t, f.code)}
	c := expect.Value(Machine.Disable(site, k, env))(t)
	return arch.Text{Code: bytes.Join([][]byte{before, c.New, after}, nil), Start: start}, c
}

// eachDisabled calls check with each form of site as each kind in each environment.
func eachDisabled(check func(f form, k arch.Kind, env arch.Context)) {
	for _, f := range registerForms {
		for _, k := range kinds {
			if k == arch.Enabled && f.enabled == "" {
				continue // for which there is no room
			}
			for _, env := range environments {
				check(f, k, env)
			}
		}
	}
}

// What stands around a site is padding or other code, and must not matter.
func TestDisabledRecognisesEachForm(t *testing.T) {
	eachDisabled(func(f form, k arch.Kind, env arch.Context) {
		for _, around := range [][]byte{
			nil, {0xcc, 0xcc, 0xcc}, {0x90, 0x90, 0x90}, {0x66, 0x31, 0xc0}, {0xc3, 0x74, 0x01}, {0x0f, 0x1f, 0x00},
			{0x75, 0x02}, {0x75, 0x02, 0x90}, {0x66, 0x90},
		} {
			text, c := disabledText(t, f, k, env, around, around)
			got, ok := Machine.Disabled(text, c.RecordedOffset, k)
			// What is behind a short form may make a longer one of it.
			if !ok || got.Offset != c.Site.Offset || !bytes.HasPrefix(got.Code, c.New) || around == nil && len(got.Code) != len(c.New) {
				t.Errorf("%s as %s in %+v before % x is read back as %+v, %v", f.name, arch.Describe(k, f.form), env, around, got, ok)
			}
		}
	})
}

// A load of a stub's address has room for what a call through its register has none: it
// becomes that of the address of a helper, which loads the semaphore.
func TestLoadsOfTestsBecomeThoseOfTheirHelper(t *testing.T) {
	for _, c := range []struct{ code, new string }{
		{"48 8b 05 00 00 00 00", "48 8d 05 00 00 00 00"}, // mov to lea, %rax
		{"4c 8b 3d 00 00 00 00", "4c 8d 3d 00 00 00 00"}, // %r15
	} {
		site := arch.Site{Offset: 0x40, GOT: true, Register: true, Code: unhex(t, c.code)}
		got := mustDisable(t, site, arch.Enabled, arch.Context{SemaphoreBytes: 2, Armable: true})
		want := arch.Change{
			Site: site, New: unhex(t, c.new), RecordedOffset: 0x40, Target: arch.TargetTestHelper,
			Reloc: elfreloc.Relocation{Offset: 0x43, Type: uint32(elf.R_X86_64_PC32), Addend: -4},
		}
		expect.Equal(t, want, got)
		got.New[3] = 0x20 // as linked
		text := arch.Text{Code: got.New, Start: 0x40}
		if back, ok := Machine.Disabled(text, 0x40, arch.Enabled); !ok || !back.Register || len(back.Code) != len(site.Code) {
			t.Errorf("read back as %+v, %v", back, ok)
		}
		if to, ok := Machine.Branch(text, 0x40); !ok || to != 0x67 {
			t.Errorf("it leads to %#x, %v", to, ok)
		}
		if _, ok := Machine.Disabled(text, 0x40, arch.Probe); ok {
			t.Error("it is taken for a probe's call")
		}
	}
}

// mustDisable returns the disabled form of a site.
func mustDisable(t *testing.T, s arch.Site, k arch.Kind, env arch.Context) arch.Change {
	t.Helper()
	return expect.Value(Machine.Disable(s, k, env))(t)
}

package object

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/internal/emit/dof"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

// assembled returns an object of amd64.
func assembled(t *testing.T, text string) string {
	t.Helper()
	tools.Need(t, "as")
	path := filepath.Join(t.TempDir(), "drti.s")
	disk.Write(t, path, text)
	tools.Must(t, "as", "--64", "-o", path+".o", path)
	return path + ".o"
}

func freebsd(t *testing.T) *Target {
	t.Helper()
	target := &Target{System: FreeBSD}
	expect.OK(t, target.Name("x86_64-unknown-freebsd", nil))
	return target
}

func one() []dof.Provider {
	return []dof.Provider{{Name: "p", Probes: []dof.Probe{{Name: "x", Functions: []dof.Function{{Name: "f", Symbol: "$dtrace1.f", Offsets: []uint32{3}}}}}}}
}

// What is hidden in drti becomes local, what it needs of others stays, and what it
// registers is the format.
func TestDrtiIsPartOfTheObject(t *testing.T) {
	d := DOF{Providers: one()}
	expect.OK(t, d.OpenDrti(assembled(t, ".globl shown, kept\n.hidden kept\nshown: call kept\ncall other\nkept: lea __SUNW_dof(%rip), %rax\nret\n")))
	target := freebsd(t)
	expect.OK(t, target.CheckDOF(d))
	data := expect.Value(target.WriteDOF(d))(t)
	f := disk.ELF(t, data)
	syms := expect.Value(f.Symbols())(t)
	got := map[string]string{}
	for _, s := range syms {
		if s.Name != "" && s.Section != elf.SHN_ABS {
			got[s.Name] += strings.TrimPrefix(elf.ST_BIND(s.Info).String(), "STB_") + " " + f.Sections[s.Section].Name
		}
	}
	for name, want := range map[string]string{"shown": "GLOBAL .text", "kept": "LOCAL .text", "__SUNW_dof": "LOCAL .SUNW_dof", "other": "GLOBAL ", "$dtrace1.f": "GLOBAL "} {
		expect.Equal(t, want, got[name], "%s", name)
	}
	// Nothing but what drti holds itself if there is nothing to register.
	if data, err := target.WriteDOF(DOF{Drti: d.Drti}); err != nil || bytes.Contains(data, []byte("shown")) {
		t.Errorf("without providers: %v", err)
	}
}

func TestUselessDrti(t *testing.T) {
	arm64 := filepath.Join(objects.Directory(), "calls.arm64-gcc12-O2.o")
	for path, want := range map[string]string{
		assembled(t, "nop\n"):                                "does not register __SUNW_dof",
		assembled(t, ".globl __SUNW_dof\n__SUNW_dof: nop\n"): "defines __SUNW_dof, which is what it is to register",
		arm64: "is not an object of EM_X86_64, ELFCLASS64",
	} {
		d := DOF{}
		expect.OK(t, d.OpenDrti(path))
		expect.Equal(t, path+": "+want, fmt.Sprint(freebsd(t).CheckDOF(d)))
	}
	d := DOF{}
	expect.OK(t, d.OpenDrti(assembled(t, "lea ___SUNW_dof(%rip), %rax\n")))
	d.Lazy = true
	expect.OK(t, freebsd(t).CheckDOF(d))
}

func TestSystems(t *testing.T) {
	for name, want := range map[string]System{
		"linux": Linux, "": Linux, "x86_64-linux-gnu": Linux, "freebsd": FreeBSD, "aarch64-unknown-freebsd14.0": FreeBSD,
		"x86_64-pc-solaris2.11": Illumos, "illumos": Illumos, "x86_64-unknown-illumos": Illumos,
	} {
		expect.Equal(t, want, expect.Value(ParseSystem(name))(t), "%s", name)
	}
	expect.Equal(t, "x86_64-apple-darwin: has no form of probes that is known here; --target names a system that has",
		expect.Failure(ParseSystem("x86_64-apple-darwin")))
}

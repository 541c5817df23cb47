package providers

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/slurp"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// checkListDOF looks at the listing of an image whose format is at an address, and at that
// of the image without symbols: each site is disabled, where the kernel looks for it.
func checkListDOF(t *testing.T, image string, m elf.Machine, file *slurp.File, addr uint64) {
	t.Helper()
	strip := map[elf.Machine]string{elf.EM_X86_64: toolchains.AMD64.Tool("strip"), elf.EM_AARCH64: toolchains.ARM64.Tool("strip")}[m]
	tools.Need(t, strip)
	// A compiler's clones are listed by the name of the source, while their symbols are there.
	var want, wantStripped []string
	for i := range file.Probes {
		p := &file.Probes[i]
		source, _, _ := strings.Cut(p.Function, ".")
		for enabled, offsets := range map[string][]uint32{"": p.Offsets, " enabled": p.Enabled} {
			for _, off := range offsets {
				behind := fmt.Sprintf(":%s%s at %#x", p.Name, enabled, p.Start(addr, 0)+uint64(off))
				want = append(want, p.Provider+":"+source+behind)
				wantStripped = append(wantStripped, p.Provider+":"+p.Function+behind)
			}
		}
	}
	stripped := filepath.Join(t.TempDir(), "stripped")
	tools.Must(t, strip, "--strip-all", "-o", stripped, image)
	for path, want := range map[string][]string{image: want, stripped: wantStripped} {
		slices.Sort(want)
		expect.Equal(t, want, listedDOF(t, path), "%s", filepath.Base(path))
	}
}

// listedDOF returns the sites of a listing.
func listedDOF(t *testing.T, image string) (sites []string) {
	t.Helper()
	for _, p := range listjson.Probes(t, tools.Output(t, converter, "list", "--json", image)) {
		if want := map[string]string{"weighed": "[{long } {int } {int }]", "order-placed": "[{int } {char * }]"}[p.Name]; want != "" && fmt.Sprint(p.Arguments) != want {
			t.Errorf("%s: arguments %v, want %s", p.Name, p.Arguments, want)
		}
		for _, s := range p.Sites {
			expect.Equal(t, "disabled", s.State, "%s at %s", p.Name, s.Address)
			enabled := ""
			if strings.HasPrefix(s.Kind, "isenabled") {
				enabled = " enabled"
			}
			sites = append(sites, fmt.Sprintf("%s:%s:%s%s at %s", p.Provider, p.Function, p.Name, enabled, s.Address))
		}
	}
	slices.Sort(sites)
	return sites
}

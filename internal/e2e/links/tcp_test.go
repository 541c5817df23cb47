package links

import (
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// tcpListing is what FreeBSD's bug 195222 wants to see of the TCP stack.
var tcpListing = []string{
	"tcp_do_segment accept-established",
	"tcp_do_segment connect-established",
	"tcp_do_segment connect-refused",
	"tcp_drop state-change",
	"tcp_input receive",
	"tcp_output connect-request",
	"tcp_output send",
	"tcp_respond accept-refused",
	"tcp_respond send",
	"tcp_state_change state-change",
}

func TestTCPListing(t *testing.T) {
	compilers := []compiler{
		{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2"}},
		{machine: amd64, cc: toolchains.OldClang, flags: []string{"-O2"}},
		{machine: amd64, cc: toolchains.Clang, flags: []string{"-Os", "-fPIC"}},
		{machine: arm, cc: toolchains.GCC, flags: []string{"-O2"}},
		{machine: arm64, cc: toolchains.GCC, flags: []string{"-O2"}},
		{machine: arm64, cc: toolchains.Clang, flags: []string{"-O1"}},
		{machine: loong64, cc: toolchains.GCC, flags: []string{"-O2"}},
		{machine: ppc64, cc: toolchains.GCC, flags: []string{"-O2"}},
		{machine: ppc64le, cc: toolchains.Clang, flags: []string{"-O2"}},
		{machine: riscv64, cc: toolchains.GCC, flags: []string{"-O2"}},
		{machine: riscv64, cc: toolchains.Clang, flags: []string{"-O2"}},
		{machine: s390x, cc: toolchains.GCC, flags: []string{"-O2"}},
	}
	all := product.New(combinationDimensions...)
	all.Singly = true // TestSites and TestForeign have the pairs
	for _, c := range every(compilers, layouts, []mode{modeExe, modePIE}) {
		all.Add(c.String(), c.values(), func(t *testing.T) {
			c.compiler.parallel(t, c.linker.Path)
			object := convert(t, c.compiler.object(t, "tcp.c"), c.layout.flags()...)
			checkTCP(t, object)
			checkTCP(t, expect.Value(link(c.compiler.machine, c.linker, "tcp", c.mode.flags, object))(t))
		})
	}
	all.Run(t)
}

func checkTCP(t *testing.T, image string) {
	t.Helper()
	var got []string
	for _, l := range list(t, image) {
		expect.Equal(t, "tcp", l.Provider, "%s: provider", image)
		got = append(got, l.Function+" "+l.Name)
	}
	slices.Sort(got)
	expect.Equal(t, tcpListing, slices.Compact(got), "%s", image)
	for _, want := range []string{"args[0]  struct tcpcb * -> csinfo_t *", "args[1]  struct mbuf * -> pktinfo_t *"} {
		if out := tools.Must(t, converter, "list", "-v", "-n", "receive", image); strings.Count(out, want) != 1 {
			t.Errorf("%s: not once %q in\n%s", image, want, out)
		}
	}
}

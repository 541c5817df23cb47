package ld

import (
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// noteName matches what readelf prints of a note.
var noteName = regexp.MustCompile(`Provider: (.*)\n\s*Name: (.*)\n`)

// Objects that sdtconvert cc converts each by itself do not tell the names of probes with a module or a function. A link gives their
// notes these names; without one, cc says so and check finds them.
func TestNamesOfNotes(t *testing.T) {
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		disk.Write(t, "define.c", "#include <sdt.h>\nSDT_PROVIDER_DEFINE(icmp);\nSDT_PROBE_DEFINE1(icmp, , unreach, pkt__receive, \"int\");\n"+
			"SDT_PROBE_DEFINE1(icmp, kernel, unreach, pkt__send, \"int\");\nint sent(int c) { SDT_PROBE1(icmp, kernel, unreach, pkt__send, c); return c; }\n")
		disk.Write(t, "use.c", "#include <sdt.h>\nSDT_PROVIDER_DECLARE(icmp);\nSDT_PROBE_DECLARE(icmp, , unreach, pkt__receive);\nSDT_PROBE_DECLARE(icmp, kernel, unreach, pkt__send);\n"+
			"int sent(int);\nint main(int c, char **v) { SDT_PROBE1(icmp, , unreach, pkt__receive, c); if (SDT_PROBE_ENABLED(icmp, kernel, unreach, pkt__send)) c++;\n"+
			"SDT_PROBE1(icmp, kernel, unreach, pkt__send, c); DTRACE_PROBE1(shop___placed, int, c); return sent(c) != 1; }\n")
		said := ""
		for _, source := range []string{"define.c", "use.c"} {
			out, err := tools.Try(converter, "cc", "--", "gcc", "-O1", "-I"+tools.Root("include"), "-c", source)
			expect.OK(t, err, "%s", out)
			said += out
		}
		expect.Contains(t, said, "use.o: another object defines the probe icmp__unreach_pkt__receive, so its notes name it sdt:icmp__unreach_pkt__receive")
		tools.Must(t, "gcc", "-B"+tools.Driver(t, l.Path), "-o", "late", "define.o", "use.o")
		out, err := tools.Try(converter, "check", "late")
		if exitCode(err) != 1 || !strings.Contains(out, "[note-name]") {
			t.Errorf("%v, %s", err, out)
		}
		check := untouched(t, "define.o", "use.o")
		gcc(t, l, "-o", "program", "define.o", "use.o")
		check()
		tools.Must(t, "./program")
		names := map[string]int{}
		for _, m := range noteName.FindAllStringSubmatch(tools.Must(t, "readelf", "-nW", "program"), -1) {
			names[m[1]+":"+m[2]]++
		}
		expect.Equal(t, map[string]int{"icmp:pkt__receive": 1, "icmp:pkt__send": 2, "shop:placed": 1}, names, "notes")
		tools.Must(t, converter, "check", "--require-notes", "--require", "icmp:::pkt-send", "program")
		if symbols := tools.Output(t, "nm", noPlugins, "program"); strings.Contains(symbols, "sdt_icmp__unreach_pkt__receive_semaphore") || !strings.Contains(symbols, "icmp_pkt__send_semaphore") {
			t.Errorf("semaphores: %s", symbols)
		}
	})
}

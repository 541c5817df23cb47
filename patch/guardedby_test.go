package patch_test

import (
	"testing"

	"sdtconvert/internal/testkit/expect"
)

// Sections that tie probes to guards are pairs of strings, or the object is refused.
func TestGuardsOfProbes(t *testing.T) {
	for text, want := range map[string]string{
		`.asciz "_shop___item", "_shop___other", "_shop___item", "_shop___other"`: "",
		`.asciz "_shop___item", "_a", "_shop___item", "_b"`:                       ".sdt_guards+0x10: the probe shop___item has the guards a and b, want one",
		`.asciz "_shop___item"`:         `.sdt_guards+0x0: want pairs of strings, each "_" and an id`,
		`.asciz "_shop___item", "b"`:    `.sdt_guards+0x0: want pairs`,
		`.asciz "_", "_b"`:              `.sdt_guards+0x0: want pairs`,
		`.ascii "_shop___item\0_b"`:     `.sdt_guards+0x0: want pairs`,
		`.asciz "_a", "_b"; .byte 0x5f`: `.sdt_guards+0x6: want pairs`,
	} {
		object := assemble(t, onlyCall+"\t.section .sdt_guards,\"e\",@progbits\n\t"+text+"\n")
		options := defaults()
		options.Stapsdt = true
		out, err := convertBytes(t, object, options)
		if want == "" {
			expect.OK(t, err)
			continue
		}
		expect.Error(t, err, want)
		if out != nil {
			t.Errorf("%s: output beside an error", text)
		}
	}
}

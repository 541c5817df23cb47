package usdt

import (
	"regexp"
	"strings"
	"sync"
)

// operand is what DTrace reads of an argument (libdtrace/dt_prov_uprobe.c, copy_args):
// a general register, a constant, or memory that general registers lead to, in the
// syntax of AT&T or of Arm. It is compiled when it is first asked for: few runs need it, and
// all would wait for it.
var operand = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-?[0-9]+@(?:` +
		`%(?:r[0-9]+[dwb]?|[re]?[abcd]x|[abcd][lh]|[re]?(?:si|di|sp|bp|ip)|(?:si|di|sp|bp)l)` +
		`|[xw][0-9]+|sp|lr|a[0-9]+` +
		`|\$?-?[0-9]+` +
		`|(?:-?[0-9]+)?\(%[a-z0-9]+(?:,%[a-z0-9]+(?:,[1248])?)?\)` +
		`|-?[0-9]+\([a-z][a-z0-9]*\)` +
		`|\[[a-z0-9]+(?:, *(?:-?[0-9]+|[a-z0-9]+))?\]` +
		`)$`)
})

// argument begins one in a string of operands, in which Arm's have spaces.
var argument = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^| )-?[0-9]+f?@`) })

// Operands takes operands apart. bad is the first that DTrace does not read, or "".
func Operands(all string) (n int, bad string) {
	starts := argument().FindAllStringIndex(all, -1)
	for i, at := range starts {
		end := len(all)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		if one := strings.TrimSpace(all[at[0]:end]); bad == "" && !operand().MatchString(one) {
			bad = one
		}
	}
	return len(starts), bad
}

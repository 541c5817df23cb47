package patch

import (
	"testing"

	"sdtconvert/resolve"
)

// clang names a function's own probe object after the function, as the symbol or
// the source has it: clones and parts of the function use it too.
func TestChooseLocalProbe(t *testing.T) {
	candidates := []localObject{
		{symbol: 1, function: "f", file: 9}, {symbol: 2, function: "g", file: 9},
		{symbol: 3, function: "_ZL1hi.__uniq.12", file: 9}, {symbol: 4, function: "g", file: 21},
	}
	f := &ProbeObjects{files: []int{9, 21}, firstGlobal: 30}
	for _, c := range []struct {
		function resolve.Function
		want     int
	}{
		{resolve.Function{Name: "f", Raw: "f", Symbol: 20}, 1},
		{resolve.Function{Name: "g", Raw: "g", Symbol: 20}, 2},
		{resolve.Function{Name: "g", Raw: "g.cold.1", Symbol: 20}, 2},
		{resolve.Function{Name: "g", Raw: "g.llvm.17", Symbol: 21}, 4},
		{resolve.Function{Name: "h", Raw: "_ZL1hi.__uniq.12", Symbol: 20}, 3},
		{resolve.Function{Name: "other", Raw: "other", Symbol: 20}, 1}, // the first of its file
		{resolve.Function{Name: "other", Raw: "other", Symbol: 21}, 4},
	} {
		if got := f.choose(c.function, candidates); got == nil || got.symbol != c.want {
			t.Errorf("%s: got %+v, want %d", c.function.Raw, got, c.want)
		}
	}
	if got := f.choose(resolve.Function{}, candidates); got != nil {
		t.Errorf("without a function: got %+v", got)
	}
}

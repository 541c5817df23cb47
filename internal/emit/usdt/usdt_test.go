package usdt

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func TestFunctionsAreThereOnceAndFit(t *testing.T) {
	long := strings.Repeat("f", 200)
	names, at := functions([]Probe{{Function: "main"}, {Function: "place"}, {Function: "main"}, {Function: long}, {Function: ""}})
	expect.Equal(t, "\x00main\x00place\x00"+long[:127]+"\x00", string(names))
	expect.Equal(t, []int64{1, 6, 1, 12, 0}, at)
}

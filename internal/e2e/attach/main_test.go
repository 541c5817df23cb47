package attach

import (
	"testing"

	"sdtconvert/internal/testkit/tools"
)

var (
	converter string
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	tools.MostlyWait()
	tools.Main(m, `TestLinks|TestNops$|TestNotesAlone|TestDTraceLinks`, &converter, nil)
}

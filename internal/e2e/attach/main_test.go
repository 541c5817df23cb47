package attach

import (
	"os"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

var (
	converter string
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	tools.MostlyWait()
	os.Exit(tools.Main(m, `TestLinks|TestNops$|TestNotesAlone|TestDTraceLinks`, func(_, program string) error {
		converter = program
		return nil
	}))
}

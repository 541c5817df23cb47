package attach

import (
	"os"
	"testing"

	"sdtconvert/internal/testkit/shared"
	"sdtconvert/internal/testkit/tools"
)

var (
	files     shared.Files // the directories in which drivers find linkers
	converter string
	include   = tools.Root("include")
)

func TestMain(m *testing.M) {
	tools.MostlyWait()
	os.Exit(tools.Main(m, `TestLinks|TestNops$|TestNotesAlone|TestDTraceLinks`, func(directory, program string) error {
		files.Directory, converter = directory, program
		return nil
	}))
}

package links

import (
	"os"
	"testing"

	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/shared"
	"sdtconvert/internal/testkit/tools"
)

var (
	sources   = objects.Directory()
	files     shared.Files // what the tests make
	converter string
)

func TestMain(m *testing.M) {
	os.Exit(tools.Main(m, `TestForeign|TestArm$|TestI386|TestMerge$|TestGC$|TestSemaphores|TestStubs$|TestArchives|TestRegisters|TestLocals`, func(directory, program string) error {
		files.Directory, converter = directory, program
		return nil
	}))
}

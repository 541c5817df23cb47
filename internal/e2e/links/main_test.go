package links

import (
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
	tools.Main(m, `TestForeign|TestArm$|TestI386|TestMerge$|TestGC$|TestSemaphores|TestStubs$|TestRegisters|TestLocals`, &converter, func(directory string) error {
		files.Directory = directory
		return nil
	})
}

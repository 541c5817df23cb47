package links

import (
	"os"
	"testing"

	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/shared"
	"sdtconvert/internal/testkit/tools"
)

var (
	sources   = objects.Folder()
	files     shared.Files // what the tests make
	converter string
)

func TestMain(m *testing.M) {
	os.Exit(tools.Main(m, func(folder, program string) error {
		files.Folder, converter = folder, program
		return nil
	}))
}

package tracers

import (
	"os"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// Where the tests make files, the converter, and the folder of sdt.h.
var scratch, converter, include string

func TestMain(m *testing.M) {
	os.Exit(tools.Main(m, func(folder, program string) (err error) {
		scratch, converter = folder, program
		include, err = filepath.Abs("../../../include")
		return err
	}))
}

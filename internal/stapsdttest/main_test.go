package stapsdttest

import (
	"fmt"
	"os"
	"path/filepath"
	"sdtconvert/internal/tooltest"
	"testing"
)

// Where the tests make files, the converter, and the folder of sdt.h.
var scratch, converter, include string

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	var err error
	if include, err = filepath.Abs("../../include"); err == nil {
		scratch, err = os.MkdirTemp("", "stapsdttest-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	converter = filepath.Join(scratch, "sdtconvert")
	if _, err := tooltest.Try("go", "build", "-o", converter, "sdtconvert/cmd/sdtconvert"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

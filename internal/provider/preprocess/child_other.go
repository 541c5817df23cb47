//go:build !unix

package preprocess

import (
	"os"
	"os/exec"
)

func group(*exec.Cmd) {}

func killGroup(p *os.Process) { p.Kill() }

//go:build !linux

package image

import (
	"io/fs"
	"os"
)

const directoryFlags = 0

func (m *Mapping) isOf(*os.File, fs.FileInfo) bool { return false }

func (m *Mapping) hasInode(fs.FileInfo) bool { return false }

func (p *Process) explainPermission() error { return fs.ErrPermission }

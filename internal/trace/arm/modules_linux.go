package arm

import (
	"fmt"
	"slices"
	"syscall"

	"sdtconvert/image"
	"sdtconvert/internal/trace/probe"
)

// Look finds the sites of modules that were not looked at before, and the dynamic linker. It forgets modules that were unloaded.
func (a *Armer) Look() ([]*probe.Site, error) {
	process, err := image.OpenProcess(a.PID())
	if err != nil {
		return nil, err
	}
	defer process.Close()
	if err := a.setMachine(process); err != nil {
		return nil, err
	}
	var found []*probe.Site
	loaded := map[string]bool{}
	for _, m := range process.Modules {
		version := versionOf(m)
		// What is loaded later is found, also from another file of that name.
		key := fmt.Sprintf("%#x %s %d %d", m.Base, m.Path, version.device, version.inode)
		loaded[key] = true
		if _, known := a.modules[key]; known || m.Image == nil || m.Image.Machine() != a.Machine {
			continue
		}
		a.modules[key] = true
		a.findLoader(m)
		sites, err := a.session.fileSites(m, version)
		if err != nil {
			a.session.Warn(err)
		}
		for _, s := range sites {
			found = append(found, s.At(m.Base, key))
		}
	}
	for key := range a.modules {
		if !loaded[key] {
			a.forget(key)
		}
	}
	return found, nil
}

// readLoader finds the machine of a program that has not begun, and its dynamic linker.
func (a *Armer) readLoader() error {
	process, err := image.OpenProcess(a.PID())
	if err != nil {
		return err
	}
	defer process.Close()
	if err := a.setMachine(process); err != nil {
		return err
	}
	for _, m := range process.Modules {
		if m.Image != nil && m.Image.Machine() == a.Machine {
			a.findLoader(m)
		}
	}
	return nil
}

// findLoader notes where the dynamic linker calls a function for debuggers when it has mapped or unmapped objects, before their constructors
// run (r_brk of <link.h>), and where it says which of the two.
func (a *Armer) findLoader(m *image.Module) {
	if a.loader.call != 0 || m.Object == nil {
		return
	}
	symbols, err := m.Object.DynamicSymbols()
	if err != nil {
		return
	}
	address := func(name string) uint64 {
		for _, s := range symbols.Named(name) {
			if s.Section > 0 {
				return s.Value + m.Base
			}
		}
		return 0
	}
	if call := address("_dl_debug_state"); call != 0 {
		code, err := m.Image.Bytes(image.Addr{Offset: call - m.Base}, loaderBytes)
		if err == nil {
			a.loader = loader{call: call, code: slices.Clone(code), state: address("_r_debug")}
		}
	}
}

// loader is the dynamic linker of a process. The zero value is none.
type loader struct {
	call  uint64 // the address of the function that it calls for debuggers
	code  []byte // of the function, in the file
	state uint64 // the address of struct r_debug, 0 if it is not known

	isDecided bool // whether it has a breakpoint for good
}

// loaderBytes is how much of the function is compared: as much as a breakpoint takes.
const loaderBytes = 4

// versionOf returns the version of a module's file: of the one that is open, as its path may lead to another by now.
func versionOf(m *image.Module) (version fileVersion) {
	if m.Info == nil {
		return version
	}
	if stat, ok := m.Info.Sys().(*syscall.Stat_t); ok {
		version = fileVersion{m.Path, uint64(stat.Dev), stat.Ino, stat.Size, stat.Mtim, stat.Ctim}
	}
	return version
}

// fileVersion identifies a file and what it holds. It is zero if that is not known.
type fileVersion struct {
	path          string
	device, inode uint64
	size          int64
	modified      syscall.Timespec
	changed       syscall.Timespec // which only the system sets
}

// LookLater forgets that the modules of sites were looked at.
func (a *Armer) LookLater(found []*probe.Site) {
	for _, s := range found {
		delete(a.modules, s.Module)
	}
}

package events

import (
	"bytes"
	"encoding/binary"
	"strings"

	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// readTypes reads the names of the types that arguments of an event describe, while the process has them.
func (p *Process) readTypes(site *probe.Site, data []byte, order binary.ByteOrder) {
	for i := range site.Arguments {
		if site.Arguments[i].Format == probe.TypeName {
			p.typeName(order.Uint64(data[site.Layout.Arguments[i].At:]), order)
		}
	}
}

// nameTypes adds the names of the types that arguments describe.
func (e *Event) nameTypes(order binary.ByteOrder) {
	if !e.Layout.HasTypeNames {
		return
	}
	for i := range e.Arguments {
		if e.Arguments[i].Format != probe.TypeName || e.Texts[i].Unreadable {
			continue
		}
		e.Texts = append([]Copied{}, e.Texts...) // which may be those of all events
		if name := e.Process.typeName(e.Values[i], order); name != "" {
			e.Texts[i].Text = name
		}
	}
}

// mostTypes bounds the names that are kept of a process, and mostTypeName a name.
const (
	mostTypes    = 1 << 12
	mostTypeName = 512
)

// typeName returns the name of a type, "" if it is not known: a std::type_info has a pointer to its class's functions, and then one to its
// name (Itanium C++ ABI, "Run-Time Type Information").
func (p *Process) typeName(address uint64, order binary.ByteOrder) string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if name, ok := p.types[address]; ok || p.Memory == nil || len(p.types) == mostTypes {
		return name
	}
	var word [wordBytes]byte
	if n, _ := p.Memory.ReadAt(word[:], int64(address)+wordBytes); n < len(word) {
		return ""
	}
	data := make([]byte, mostTypeName)
	n, _ := p.Memory.ReadAt(data, int64(order.Uint64(word[:]))) // up to the end of what is there
	text, _, isWhole := bytes.Cut(data[:n], []byte{0})
	if !isWhole {
		return ""
	}
	name := "_ZTS" + string(bytes.TrimPrefix(text, []byte("*"))) // of a type that is compared by its address
	name = message.Escape(strings.TrimPrefix(strings.TrimPrefix(probe.Demangle(name), "typeinfo name for "), "_ZTS"))
	if p.types == nil {
		p.types = map[uint64]string{}
	}
	p.types[address] = name
	return name
}

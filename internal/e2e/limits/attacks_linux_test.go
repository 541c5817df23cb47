package limits

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// attack is a kind of file that is made to be expensive.
type attack struct {
	name     string
	make     func(n int) []byte // of about n bytes
	commands []string           // what reads it: words, with FILE and OUT in them
}

// readers are the commands that read any object.
var readers = []string{
	"convert -o OUT FILE", "convert -v --stapsdt --dtrace -o OUT FILE", "convert --json -o OUT FILE", "inspect FILE", "list -v FILE",
	"check FILE", "stubs -o OUT FILE", "sites --asm -o OUT FILE", "provider -G -s shop.d -o OUT FILE", "resolve FILE .text+0x3 .text+0x123",
	"ld --linker true -- -o OUT FILE",
}

// imageReaders are those that read an image.
var imageReaders = []string{"list -v FILE", "list --inlines -v FILE", "check FILE", "resolve FILE 0x1000", "resolve --inlines FILE 0x1203"}

// debugReaders are those that read the debug information of objects.
var debugReaders = []string{"inspect FILE", "convert --stapsdt --dtrace -o OUT FILE", "check FILE", "resolve --inlines FILE .text+0x5"}

var attacks = []attack{
	{"sites", sites, readers},
	{"stubs", stubs, readers},
	{"references", references, readers},
	{"undecodable", undecodable, readers},
	{"sections", sections, readers},
	{"relocation-sections", relocationSections, readers},
	{"shared-names", sharedNames, readers},
	{"called-shared-names", calledSharedNames, readers},
	{"long-name", longName, readers},
	{"groups", groups, readers},
	{"crel", crel, readers},
	{"functions", func(n int) []byte { return functions(elf.ET_REL, n) }, readers},
	{"image-functions", func(n int) []byte { return functions(elf.ET_EXEC, n) }, imageReaders},
	{"notes", notes, append(imageReaders, readers...)},
	{"note-sections", noteSections, imageReaders},
	{"segments", segments, imageReaders},
	{"image-sections", imageSections, imageReaders},
	{"zlib", func(n int) []byte { return compressed(n, elf.COMPRESS_ZLIB) }, append(imageReaders, "inspect FILE")},
	{"frames", frames, imageReaders},
	{"records", records, imageReaders},
	{"recorded-probes", recordedProbes, imageReaders},
	{"named-functions", namedFunctions, imageReaders},
	{"long-function", longFunction, imageReaders},
	{"rows", rows(elf.ET_EXEC), imageReaders},
	{"units", units(elf.ET_EXEC), imageReaders},
	{"nested-functions", nested(elf.ET_EXEC, tagSubprogram), imageReaders},
	{"nested-inlined", nested(elf.ET_EXEC, tagInlined), imageReaders},
	{"nested-blocks", nested(elf.ET_EXEC, tagBlock), imageReaders},
	{"inlined", inlined(elf.ET_EXEC), imageReaders},
	{"flat", flat(elf.ET_EXEC), imageReaders},
	{"object-rows", rows(elf.ET_REL), debugReaders},
	{"object-units", units(elf.ET_REL), debugReaders},
	{"object-nested", nested(elf.ET_REL, tagSubprogram), debugReaders},
	{"object-inlined", inlined(elf.ET_REL), debugReaders},
	{"typed", typed, debugReaders},
	{"empty-members", emptyMembers, readers},
	{"members", members, readers},
	{"headers", headerMembers, readers},
	{"index", indexed, readers},
	{"long-members", longMembers, readers},
}

// sites has calls of one stub.
func sites(n int) []byte {
	count := n / 29
	return object(calls(count), callsOf(count, 2, false), one(5*count, stub)).bytes()
}

// stubs has a call of each of its stubs.
func stubs(n int) []byte {
	count := n / (29 + 24 + 24)
	s := newSymbols()
	for i := range count {
		s.add(fmt.Sprintf("__dtrace_probe_a___%x", i), global, 0, 0, 0)
	}
	return object(calls(count), callsOf(count, 1, true), s).bytes()
}

// references has addresses of a stub in data.
func references(n int) []byte {
	count := n / 32
	var relocs []byte
	for i := range count {
		relocs = relocation(relocs, uint64(8*i), 2, elf.R_X86_64_64, 0)
	}
	f := object(calls(1), nil, one(5, stub))
	data := f.add(section{name: ".data", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, data: make([]byte, 8*count)})
	f.add(section{name: ".rela.data", kind: elf.SHT_RELA, data: relocs, link: 4, info: uint32(data), entsize: 24})
	return f.bytes()
}

// undecodable has relocations of a stub at what is not a call.
func undecodable(n int) []byte {
	count := n / 29
	return object(make([]byte, 5*count), callsOf(count, 2, false), one(5*count, stub)).bytes()
}

func sections(n int) []byte {
	f := object(calls(1), callsOf(1, 2, false), one(5, stub))
	for range n / sectionSize {
		f.add(section{name: ".text.x", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR})
	}
	return f.bytes()
}

// relocationSections share their relocations.
func relocationSections(n int) []byte {
	count := n / 2 / 29
	f := object(calls(count), callsOf(count, 2, false), one(5*count, stub))
	for range n / 2 / sectionSize {
		f.add(section{name: ".rela.text", kind: elf.SHT_RELA, at: 5, link: 4, info: 2, entsize: 24})
	}
	return f.bytes()
}

// names are symbols whose names are ends of one.
func names(n int) *symbols {
	const prefix = "__dtrace_probe_"
	s := newSymbols()
	count := n / (len(prefix) + elf.Sym64Size)
	s.names = []byte("\x00" + strings.Repeat(prefix, count) + "end\x00")
	for i := range count {
		s.named(1+i*len(prefix), global, 0, 0, 0)
	}
	return s
}

func sharedNames(n int) []byte { return object(nil, nil, names(n)).bytes() }

func calledSharedNames(n int) []byte {
	s := names(n * 39 / 68)
	count := len(s.table)/elf.Sym64Size - 1
	return object(calls(count), callsOf(count, 1, true), s).bytes()
}

func longName(n int) []byte {
	count := n / 2 / 29
	s := one(5*count, stub+strings.Repeat("x", min(n/2, 1<<20-100)))
	return object(calls(count), callsOf(count, 2, false), s).bytes()
}

// groups share their members.
func groups(n int) []byte {
	data := bytes.Repeat([]byte{2, 0, 0, 0}, n/8)
	f := object(calls(1), callsOf(1, 2, false), one(5, stub), section{name: ".group", kind: elf.SHT_GROUP, data: data, link: 4, info: 1, entsize: 4})
	for range n / 2 / sectionSize {
		f.add(section{name: ".group", kind: elf.SHT_GROUP, at: 6, link: 4, info: 1, entsize: 4})
	}
	return f.bytes()
}

// crel has relocations of one byte each.
func crel(n int) []byte {
	count := n / 3
	data := binary.AppendUvarint(nil, uint64(count)<<3)
	data = append(data, 1<<2|3, 2, byte(elf.R_X86_64_PC32))
	data = append(data, bytes.Repeat([]byte{2 << 2}, count-1)...)
	f := object(make([]byte, 2*count), nil, one(2*count, stub))
	f.add(section{name: ".crel.text", kind: 0x40000014, data: data, link: 4, info: 2, entsize: 1})
	return f.bytes()
}

// functions lie in each other.
func functions(kind elf.Type, n int) []byte {
	s := newSymbols()
	count := n / (elf.Sym64Size + 8)
	addr := uint64(0)
	if kind == elf.ET_EXEC {
		addr = 0x1000
	}
	for i := range count {
		s.add(fmt.Sprintf("f%x", i), global|function, 2, addr+uint64(i), uint64(2*(count-i)))
	}
	if kind == elf.ET_REL {
		s.add(stub, global, 0, 0, 0)
		return object(append(calls(1), make([]byte, 2*count)...), callsOf(1, count+1, false), s).bytes()
	}
	return image(2*count, s).bytes()
}

// image returns a program with code at 0x1000, section 2.
func image(size int, s *symbols) *file {
	f := newFile(elf.ET_EXEC)
	f.add(section{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, addr: 0x1000, data: bytes.Repeat([]byte{0x90}, size)})
	if s != nil {
		s.addTo(f)
	}
	return f
}

func notes(n int) []byte {
	var b []byte
	for i := 0; len(b) < n*9/10; i++ {
		b = append(b, note(uint64(0x1000+i%(n/10)), "p", fmt.Sprintf("%x", i), "8@%rax")...)
	}
	s := newSymbols()
	s.add("main", global|function, 2, 0x1000, uint64(n/10))
	f := image(n/10, s)
	f.add(section{name: ".note.stapsdt", kind: elf.SHT_NOTE, data: b})
	return f.bytes()
}

// noteSections share their notes.
func noteSections(n int) []byte {
	one := note(0x1000, "p", "n", "")
	f := image(16, nil)
	first := f.add(section{name: ".note.stapsdt", kind: elf.SHT_NOTE, data: bytes.Repeat(one, n/2/len(one))})
	for range n / 2 / sectionSize {
		f.add(section{name: ".note.stapsdt", kind: elf.SHT_NOTE, at: first})
	}
	return f.bytes()
}

func segments(n int) []byte {
	s := newSymbols()
	s.add("main", global|function, 2, 0x1000, 16)
	f := image(16, s)
	f.segments = n / segmentSize
	f.add(section{name: ".note.stapsdt", kind: elf.SHT_NOTE, data: note(0x1000, "p", "n", "8@%rax")})
	return f.bytes()
}

func imageSections(n int) []byte {
	s := newSymbols()
	s.add("main", global|function, 2, 0x1000, 16)
	f := image(16, s)
	f.add(section{name: ".note.stapsdt", kind: elf.SHT_NOTE, data: note(0x1000, "p", "n", "8@%rax")})
	for range n / sectionSize {
		f.add(section{name: ".text", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, addr: 0x1000, at: 2})
	}
	return f.bytes()
}

// compressed has debug information that is a thousand times as long as the file.
func compressed(n int, kind elf.CompressionType) []byte {
	var packed bytes.Buffer
	binary.Write(&packed, binary.LittleEndian, elf.Chdr64{Type: uint32(kind), Size: uint64(n) * 1000, Addralign: 1})
	w := zlib.NewWriter(&packed)
	zeros := make([]byte, 1<<20)
	for left := n * 1000; left > 0; left -= len(zeros) {
		w.Write(zeros)
	}
	w.Close()
	s := newSymbols()
	s.add("main", global|function, 2, 0x1000, 16)
	f := image(16, s)
	f.add(section{name: ".note.stapsdt", kind: elf.SHT_NOTE, data: note(0x1000, "p", "n", "8@%rax")})
	for _, name := range []string{".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"} {
		f.add(section{name: name, kind: elf.SHT_PROGBITS, flags: elf.SHF_COMPRESSED, data: packed.Bytes()})
	}
	return f.bytes()
}

// frames describe one function again and again.
func frames(n int) []byte {
	le := binary.LittleEndian
	data := []byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0, 0, 0, 0, 0}
	for i := 0; len(data) < n; i++ {
		at := len(data)
		data = le.AppendUint32(data, 16)
		data = le.AppendUint32(data, uint32(at+4))
		data = le.AppendUint32(data, uint32(0x1000+i-(0x10000000+at+8)))
		data = le.AppendUint32(data, uint32(1000))
		data = append(data, 0, 0, 0, 0)
	}
	f := image(16, nil)
	f.add(section{name: ".eh_frame", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC, addr: 0x10000000, data: data})
	f.add(section{name: ".note.stapsdt", kind: elf.SHT_NOTE, data: note(0x1000, "p", "n", "8@%rax")})
	return f.bytes()
}

// member returns one of an archive.
func member(name string, size int) string {
	return fmt.Sprintf("%-16s%-12s%-6s%-6s%-8s%-10d`\n", name, "0", "0", "0", "100644", size)
}

const archive = "!<arch>\n"

func emptyMembers(n int) []byte {
	return []byte(archive + strings.Repeat(member("a.o/", 0), n/60))
}

func members(n int) []byte {
	one := object(calls(1), callsOf(1, 2, false), one(5, stub)).bytes()
	return []byte(archive + strings.Repeat(member("a.o/", len(one))+string(one), n/(60+len(one))))
}

func headerMembers(n int) []byte {
	head := newFile(elf.ET_REL).bytes()
	copy(head[40:], make([]byte, 24))
	head = head[:64]
	return []byte(archive + strings.Repeat(member("a.o/", len(head))+string(head), n/(60+len(head))))
}

// indexed has an index of many symbols without names, and one member that changes.
func indexed(n int) []byte {
	one := object(calls(1), callsOf(1, 2, false), one(5, stub)).bytes()
	count := n / 5
	size := 4 + 5*count
	size += size & 1
	index := binary.BigEndian.AppendUint32(nil, uint32(count))
	for range count {
		index = binary.BigEndian.AppendUint32(index, uint32(8+60+size))
	}
	index = append(index, make([]byte, size-len(index))...)
	return []byte(archive + member("/", size) + string(index) + member("a.o/", len(one)) + string(one))
}

// longMembers share a name.
func longMembers(n int) []byte {
	half := n / 2 &^ 1
	return []byte(archive + member("//", half) + strings.Repeat("x", half-2) + "/\n" + strings.Repeat(member("/0", 0), n/2/60))
}

// repeat returns a text of about n bytes: a beginning, the same over and over, an end.
func repeat(head, middle, tail string) func(n int) []byte {
	return func(n int) []byte { return []byte(head + strings.Repeat(middle, n/len(middle)) + tail) }
}

// numbered returns a text of about n bytes: a beginning, lines with their number, an end.
func numbered(head, line, tail string) func(n int) []byte {
	return func(n int) []byte {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, line, i)
		}
		b.WriteString(tail)
		return []byte(b.String())
	}
}

var listReaders = []string{"check --require @FILE tiny.o"}
var responseReaders = []string{"inspect @FILE", "ld --linker true -- @FILE", "provider -h -s shop.d @FILE"}
var providerReaders = []string{"provider -h -s FILE -o OUT", "provider -G -s FILE -o OUT", "provider -h -x stubs -s FILE -o OUT", "provider -G --target x86_64-freebsd -x lazyload -s FILE -o OUT tiny.o"}
var scriptReaders = []string{"ld --linker true -- -o OUT FILE", "ld --linker true -- -o OUT -T FILE"}

var textAttacks = []attack{
	{"list-lines", numbered("", "%x\n", ""), listReaders},
	{"list-empty", repeat("", "\n", ""), listReaders},
	{"list-line", repeat("", "x", ""), listReaders},
	{"list-stars", repeat("", "*", ""), listReaders},
	{"list-comments", repeat("", "# x\n", ""), listReaders},
	{"response-words", repeat("", "a ", ""), responseReaders},
	{"response-word", repeat("", "a", ""), responseReaders},
	{"response-self", repeat("", "@in ", ""), responseReaders},
	{"response-quotes", repeat("", "\\\"", ""), responseReaders},
	{"script-inputs", repeat("INPUT(", "a ", ")"), scriptReaders},
	{"provider-probes", numbered("provider p {", "probe p%x();", "};"), providerReaders},
	{"provider-arguments", numbered("provider p {", "probe p%x(int,int,int,int,int,int,int,int,int,int);", "};"), providerReaders},
	{"provider-pointers", repeat("provider p { probe a(int ", "*", "); };"), providerReaders},
	{"provider-parentheses", repeat("provider p { probe a(int ", "(", "); };"), providerReaders},
	{"provider-typedefs", numbered("", "typedef int t%x;", "provider p { probe a(); };"), providerReaders},
	{"provider-structs", repeat("", "struct a {", ""), providerReaders},
	{"provider-faults", repeat("provider p {", "probe p();", "};"), providerReaders},
	{"provider-name", repeat("provider p { probe ", "x", "(); };"), providerReaders},
	{"provider-pragmas", repeat("", "#pragma D attributes a/b/c provider p args\n", "provider p { probe a(); };"), providerReaders},
	{"provider-comments", repeat("", "/**/", "provider p { probe a(); };"), providerReaders},
	{"provider-empties", numbered("", "provider p%x {};", ""), providerReaders},
}

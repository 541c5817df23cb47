package lines

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The most bytes that one can become: deflate repeats 258 bytes by two codes of
// one bit (RFC 1951, 3.2.5), zstd a block of 128 KiB by four bytes (RFC 8878,
// 3.1.1.2).
var maxGrowth = map[elf.CompressionType]uint64{
	elf.COMPRESS_ZLIB: 1032,
	elf.COMPRESS_ZSTD: 1 << 17 / 4,
}

// unpack decompresses a section: one with the header of the gABI, chapter 4,
// "Section Compression", or one called .zdebug_* that starts with "ZLIB" and its
// size, as older tools had it.
func (s *sections) unpack(index int, data []byte) ([]byte, error) {
	kind, size, packed := s.compressed(index, data)
	name := s.o.Sections[index].Name
	growth, ok := maxGrowth[kind]
	switch {
	case packed == nil:
		return nil, fmt.Errorf("%s: %d bytes, and no header of a compressed section", name, len(data))
	case !ok:
		return nil, fmt.Errorf("%s: compressed as %v, which is not known", name, kind)
	case size > growth*uint64(len(packed)):
		return nil, fmt.Errorf("%s: says that %d bytes decompress to %d", name, len(packed), size)
	}
	if err := s.hold(size); err != nil {
		return nil, err
	}
	r, err := decompressor(kind, size, packed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := make([]byte, size)
	if n, err := io.ReadFull(r, out); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("ends after %d of %d bytes", n, size)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

// compressed splits a section into its header and what is compressed, which is
// nil when there is no header.
func (s *sections) compressed(index int, data []byte) (elf.CompressionType, uint64, []byte) {
	l := s.o.Encoding
	if s.o.Sections[index].Flags&elf.SHF_COMPRESSED == 0 {
		if !bytes.HasPrefix(data, []byte("ZLIB")) || len(data) < 12 {
			return 0, 0, nil
		}
		return elf.COMPRESS_ZLIB, binary.BigEndian.Uint64(data[4:]), data[12:]
	}
	// Elf32_Chdr is three words of 4 bytes; Elf64_Chdr three of 8, the first of
	// them half unused.
	if len(data) < 3*l.Word() {
		return 0, 0, nil
	}
	return elf.CompressionType(l.Order.Uint32(data)), l.GetWord(data[l.Word():]), data[3*l.Word():]
}

func decompressor(kind elf.CompressionType, size uint64, packed []byte) (io.Reader, error) {
	if kind == elf.COMPRESS_ZLIB {
		return zlib.NewReader(bytes.NewReader(packed))
	}
	return zstdReader(size, packed)
}

// zstdReader reaches the library's zstd, which is internal to it, through
// debug/elf: that is handed a file whose only section is packed. A module for
// it would be larger than all of this program's own code.
func zstdReader(size uint64, packed []byte) (io.Reader, error) {
	var b bytes.Buffer
	const headers, chdr = 64 + 2*64, 24 // Elf64_Ehdr and two Elf64_Shdr; Elf64_Chdr
	for _, part := range []any{
		elf.Header64{
			Ident:   [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Version: uint32(elf.EV_CURRENT), Shoff: 64, Ehsize: 64, Shentsize: 64, Shnum: 2,
		},
		elf.Section64{},
		elf.Section64{
			Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_COMPRESSED),
			Off: headers, Size: chdr + uint64(len(packed)),
		},
		elf.Chdr64{Type: uint32(elf.COMPRESS_ZSTD), Size: size, Addralign: 1},
		packed,
	} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	f, err := elf.NewFile(bytes.NewReader(b.Bytes()))
	if err != nil {
		return nil, err
	}
	return f.Sections[1].Open(), nil
}

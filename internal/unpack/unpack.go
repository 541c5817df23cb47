// Package unpack decompresses files of which a hostile author may have made every byte: no result is longer than its limit,
// and no reader holds more memory than the result and 8 MiB.
package unpack

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ulikunitz/xz/lzma"
)

const xzMagic = "\xfd7zXZ\x00"

// formats are the first bytes of the formats that File knows.
var formats = []struct {
	name, magic string
	unpack      func(data []byte, limit int64) ([]byte, error)
}{
	{"xz", xzMagic, XZ},
	{"zstd", "\x28\xb5\x2f\xfd", zstd},
	{"gzip", "\x1f\x8b\x08", unzip},
}

// Format returns the name of the format of a file that begins with these bytes, or "".
func Format(head []byte) string {
	for _, f := range formats {
		if strings.HasPrefix(string(head), f.magic) {
			return f.name
		}
	}
	return ""
}

// File decompresses a file of one of the formats.
func File(data []byte, limit int64) ([]byte, error) {
	for _, f := range formats {
		if !bytes.HasPrefix(data, []byte(f.magic)) {
			continue
		}
		file, err := f.unpack(data, limit)
		if err != nil {
			return nil, fmt.Errorf("compressed by %s: %w", f.name, err)
		}
		return file, nil
	}
	return nil, errors.New("unknown compression")
}

// read reads all of a reader, which with the bytes before has no more than limit bytes.
func read(r io.Reader, before, limit int64) ([]byte, error) {
	file, err := io.ReadAll(io.LimitReader(r, limit-before+1))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends early")
	}
	if err == nil && int64(len(file)) > limit-before {
		err = fmt.Errorf("holds more than %d bytes", limit)
	}
	return file, err
}

func unzip(data []byte, limit int64) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return read(r, 0, limit)
}

func zstd(data []byte, limit int64) ([]byte, error) {
	r, err := ZstdReader(uint64(limit)+1, data)
	if err != nil {
		return nil, err
	}
	return read(r, 0, limit)
}

// ZstdReader decompresses up to size bytes. It reaches the library's zstd, which is internal to it, through
// debug/elf: that is handed a file whose only section is packed. A module for
// it would be larger than all of this program's own code.
func ZstdReader(size uint64, packed []byte) (io.Reader, error) {
	var b bytes.Buffer
	const headers, chdr = 64 + 2*64, 24 // Elf64_Ehdr and two Elf64_Shdr; Elf64_Chdr
	for _, record := range []any{
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
		if err := binary.Write(&b, binary.LittleEndian, record); err != nil {
			return nil, err
		}
	}
	f, err := elf.NewFile(bytes.NewReader(b.Bytes()))
	if err != nil {
		return nil, err
	}
	return f.Sections[1].Open(), nil
}

// Lengths in xz files, in bytes (https://tukaani.org/xz/xz-file-format.txt).
const streamHeader, streamFooter = 12, 12

// checkSizes are the lengths of the check behind a block, by its number in the header.
var checkSizes = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// XZ returns the contents of an xz file of one stream, whose blocks have to be compressed by LZMA2 alone. The library's own
// reader of such files would make a dictionary of any size that the file asks for. Checks are not compared: what comes out
// is read as any file is.
func XZ(data []byte, limit int64) (file []byte, err error) {
	if !bytes.HasPrefix(data, []byte(xzMagic)) || len(data) < streamHeader+8 {
		return nil, errors.New("is no xz file")
	}
	check := checkSizes[data[7]&15]
	rest := bytes.NewReader(data[streamHeader:])
	for count := 0; ; count++ {
		at := len(data) - rest.Len()
		if at >= len(data) {
			return nil, errors.New("the file ends early")
		}
		if data[at] == 0 { // the index
			if count == 0 {
				return nil, errors.New("is an xz file without a block")
			}
			return file, checkEnd(data[at:])
		}
		block, err := block(rest, data[at:], int64(len(file)), limit)
		if err != nil {
			return nil, err
		}
		file = append(file, block...)
		padding := (4 - (len(data)-rest.Len()-at)%4) % 4
		_, err = rest.Seek(int64(padding+check), io.SeekCurrent)
		if err != nil {
			return nil, err
		}
	}
}

// checkEnd sees to it that nothing follows the stream whose index and footer these are.
func checkEnd(index []byte) error {
	if len(index) < streamFooter {
		return errors.New("the file ends early")
	}
	footer := index[len(index)-streamFooter:]
	if want := 4 * (uint64(binary.LittleEndian.Uint32(footer[4:])) + 1); want != uint64(len(index)-streamFooter) || footer[10] != 'Y' || footer[11] != 'Z' {
		return errors.New("is cut off, or has more than one stream")
	}
	return nil
}

// block returns what a block holds, with the bytes before no more than limit. rest is left behind its compressed data.
func block(rest *bytes.Reader, block []byte, before, limit int64) ([]byte, error) {
	header := 4 * (int(block[0]) + 1)
	if header > len(block) {
		return nil, errors.New("the header of a block is cut off")
	}
	filter, flags := block[2:header], block[1]
	for _, optional := range []byte{0x40, 0x80} { // the sizes of the block, as integers of 7 bits a byte
		if flags&optional == 0 {
			continue
		}
		n := slices.IndexFunc(filter, func(b byte) bool { return b < 0x80 })
		if n < 0 {
			return nil, errors.New("the header of a block is cut off")
		}
		filter = filter[n+1:]
	}
	const lzma2 = 0x21
	if flags&3 != 0 || len(filter) < 3 || filter[0] != lzma2 || filter[1] != 1 {
		return nil, errors.New("is compressed by filters that are not known here, want LZMA2")
	}
	dictionary, err := lzma.DecodeDictCap(filter[2])
	if err != nil {
		return nil, err
	}
	if _, err := rest.Seek(int64(header), io.SeekCurrent); err != nil {
		return nil, err
	}
	config := lzma.Reader2Config{DictCap: int(max(min(dictionary, limit-before), lzma.MinDictCap))}
	r, err := config.NewReader2(rest)
	if err != nil {
		return nil, err
	}
	return read(r, before, limit)
}

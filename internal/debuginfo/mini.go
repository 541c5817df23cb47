package debuginfo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ulikunitz/xz/lzma"

	"sdtconvert/elfreloc"
)

// A stripped image of some distributions has the section .gnu_debugdata: an ELF file, compressed by xz,
// whose symbol table has the functions that .dynsym lacks (gdb's manual, "MiniDebugInfo").
const miniSection = ".gnu_debugdata"

// What a hostile section may cost: so many times its size in memory, and at most so many bytes.
const (
	miniRatio = 32
	miniLimit = 64 << 20
)

// MiniDebugInfo returns the ELF file in an image's .gnu_debugdata, nil if it has none. An error names the section.
func MiniDebugInfo(image *elfreloc.Object) (*elfreloc.Object, error) {
	for i := range image.Sections {
		if image.Sections[i].Name != miniSection {
			continue
		}
		data, err := image.Data(i)
		if err != nil {
			return nil, err
		}
		file, err := decompress(data)
		if err != nil {
			return nil, image.SectionError(i, err)
		}
		o, err := elfreloc.Open(bytes.NewReader(file), int64(len(file)), image.Name+" "+miniSection)
		if err != nil {
			return nil, err
		}
		if o.Machine != image.Machine || o.Encoding != image.Encoding || o.Type != image.Type {
			return nil, image.SectionError(i, fmt.Errorf("holds a %v for %v, want a %v for %v", o.Type, o.Machine, image.Type, image.Machine))
		}
		return o, nil
	}
	return nil, nil
}

// decompress returns the contents of the first block of an xz file, which has to be compressed by LZMA2 alone
// (https://tukaani.org/xz/xz-file-format.txt). The library's own reader of such files would make a dictionary of any
// size that the file asks for. Checksums are not compared: what comes out is read as any file is.
func decompress(data []byte) ([]byte, error) {
	const streamHeader = 12
	if !bytes.HasPrefix(data, []byte("\xfd7zXZ\x00")) || len(data) < streamHeader+8 {
		return nil, errors.New("is no xz file")
	}
	block := data[streamHeader:]
	header := 4 * (int(block[0]) + 1)
	if block[0] == 0 || header > len(block) {
		return nil, errors.New("is an xz file without a block")
	}
	filter, flags := block[2:header], block[1]
	for _, optional := range []byte{0x40, 0x80} { // the sizes of the block, as integers of 7 bits a byte
		if flags&optional == 0 {
			continue
		}
		n := slices.IndexFunc(filter, func(b byte) bool { return b < 0x80 })
		if n < 0 {
			return nil, errors.New("the header of its block is cut off")
		}
		filter = filter[n+1:]
	}
	const lzma2 = 0x21
	if flags&3 != 0 || len(filter) < 3 || filter[0] != lzma2 || filter[1] != 1 {
		return nil, errors.New("is compressed by filters that are not known here, want LZMA2")
	}
	limit := min(int64(len(data))*miniRatio, miniLimit)
	dictionary, err := lzma.DecodeDictCap(filter[2])
	if err != nil {
		return nil, err
	}
	config := lzma.Reader2Config{DictCap: int(max(min(dictionary, limit), lzma.MinDictCap))}
	r, err := config.NewReader2(bytes.NewReader(block[header:]))
	if err != nil {
		return nil, err
	}
	file, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(file)) > limit {
		err = fmt.Errorf("holds more than %d times its size, or more than %d MB", miniRatio, miniLimit>>20)
	}
	return file, err
}

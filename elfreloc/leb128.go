package elfreloc

// LEB128 is the encoding of integers in tables of LLVM and in SHT_CREL (DWARF 5, 7.6).
// Unlike in debug information (internal/debuginfo/cursor), where linkers pad it, it is
// never padded there: so a value has to fit into the bytes that its bits take, and a table
// that is read in blocks knows how many of them one entry has at most.

// uleb128 returns a value below 2^63 and its length, which is 0 when b holds
// none.
func uleb128(b []byte) (v uint64, n int) {
	for shift := 0; n < len(b) && shift < 63; shift += 7 {
		v |= uint64(b[n]&0x7f) << shift
		n++
		if b[n-1]&0x80 == 0 {
			return v, n
		}
	}
	return 0, 0
}

func appendULEB128(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// sleb128 returns a signed value and its length, which is 0 when b holds none of
// at most 64 bits in at most ten bytes.
func sleb128(b []byte) (v int64, n int) {
	for shift := 0; n < len(b) && shift < 70; shift += 7 {
		part := int64(b[n]) << 57 >> 57 // its seven bits, the highest of which may be the sign
		if shift == 63 && part != 0 && part != -1 {
			return 0, 0
		}
		v |= part & 0x7f << shift
		n++
		if b[n-1]&0x80 == 0 {
			if shift < 63 && part < 0 {
				v |= -1 << (shift + 7)
			}
			return v, n
		}
	}
	return 0, 0
}

func appendSLEB128(b []byte, v int64) []byte {
	for v < -0x40 || v >= 0x40 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}

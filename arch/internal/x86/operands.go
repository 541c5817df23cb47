package x86

// Unread returns gdb for an operand with the name of a symbol. Names of registers follow %.
func Unread(place string) (tracer string) {
	before := byte(0)
	for i := range len(place) {
		if c := place[i]; before != '%' && !inWord(before) && (inLetters(c) || c == '.') {
			return "gdb"
		}
		before = place[i]
	}
	return ""
}

func inWord(c byte) bool { return inLetters(c) || '0' <= c && c <= '9' || c == '.' }

func inLetters(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

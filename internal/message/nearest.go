package message

import "strings"

// Nearest returns the name that a word is a misspelling of, or "".
func Nearest(word string, names []string) string {
	nearest, least := "", 3 // more than two wrong letters make another word
	for _, name := range names {
		distance := editDistance(word, name)
		if len(word) > 2 && strings.HasPrefix(name, word) {
			distance = 1
		}
		if distance < least && distance < len(name) {
			nearest, least = name, distance
		}
	}
	return nearest
}

// editDistance returns how many letters have to be inserted, deleted or replaced to
// make b of a (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

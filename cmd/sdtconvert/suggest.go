package main

import "sdtconvert/internal/message"

// unknownWord returns the usage error for a word that should be one of names. It suggests
// the name that the word is probably a misspelling of.
func unknownWord(format, word string, names []string) error {
	if near := message.Nearest(word, names); near != "" {
		return usagef(format+": did you mean %s?", word, near)
	}
	return usagef(format, word)
}

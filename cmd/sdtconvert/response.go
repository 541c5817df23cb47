package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// maxResponse bounds what response files expand to, also those that include
// themselves. A word of one byte takes some hundred times that in memory, and the kernel
// itself takes 2 MiB of arguments.
const (
	maxResponseDepth = 16
	maxResponseSize  = 8 << 20 // bytes
)

// expandResponseFiles replaces each argument @FILE by the arguments that FILE
// holds, as the GNU tools do: they are separated by white space, quoted by ' or
// ", escaped by a backslash, and may be response files again. An argument whose
// FILE does not exist stands for itself.
func expandResponseFiles(args []string) ([]string, error) {
	budget := maxResponseSize
	return expand(args, 0, &budget)
}

func expand(args []string, depth int, budget *int) ([]string, error) {
	var out []string
	for _, arg := range args {
		name, ok := strings.CutPrefix(arg, "@")
		if !ok || name == "" {
			out = append(out, arg)
			continue
		}
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			out = append(out, arg)
			continue
		}
		if err != nil {
			return nil, err
		}
		if *budget -= len(text); depth >= maxResponseDepth || *budget < 0 {
			return nil, usagef("response file %s includes itself, or too much", name)
		}
		words, err := splitWords(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("response file %s: %w", name, err)}
		}
		if words, err = expand(words, depth+1, budget); err != nil {
			return nil, err
		}
		out = append(out, words...)
	}
	return out, nil
}

// splitWords splits a response file.
func splitWords(text []byte) ([]string, error) {
	var words []string
	var word bytes.Buffer
	inWord, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\':
			if i++; i == len(text) {
				return nil, fmt.Errorf("ends with a backslash")
			}
			inWord = true
			word.WriteByte(text[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			inWord, quote = true, c
		case quote == 0 && strings.IndexByte(" \t\r\n\v\f", c) >= 0:
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("quote %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

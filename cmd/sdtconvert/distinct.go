package main

import (
	"os"
	"path/filepath"
)

// distinct removes files that are named twice, by whatever path. Two hard links
// to one file are two files: converting one leaves the other as it is.
func distinct(files []string) ([]string, error) {
	folders := make(map[string]string)
	seen := make(map[string]bool)
	var out []string
	for _, file := range files {
		name := file
		if info, err := os.Lstat(file); err == nil && info.Mode()&os.ModeSymlink != 0 {
			if target, err := filepath.EvalSymlinks(file); err == nil {
				name = target
			}
		}
		folder, base := filepath.Split(name)
		real, known := folders[folder]
		if !known {
			var err error
			if real, err = filepath.Abs(folder); err != nil {
				return nil, err
			}
			if target, err := filepath.EvalSymlinks(real); err == nil {
				real = target
			}
			folders[folder] = real
		}
		if key := filepath.Join(real, base); !seen[key] {
			seen[key] = true
			out = append(out, file)
		}
	}
	return out, nil
}

package documents

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

var (
	// shownCommand is a command in a text or a block: the flags of `sdtconvert ld` end at --.
	shownCommand = regexp.MustCompile("sdtconvert((?: +[^ `\n|;&>)]+)+)")
	longFlag     = regexp.MustCompile(`^--[a-z][a-z-]+`)
)

// TestFlags looks for the commands and flags that the pages show in the program's help.
func TestFlags(t *testing.T) {
	pages := expect.Value(filepath.Glob(tools.Root("docs", "*.md")))(t)
	pages = append(pages, tools.Root("README.md"), tools.Root("CONTRIBUTING.md"))
	help, count := map[string]string{}, 0
	for _, path := range pages {
		for _, m := range shownCommand.FindAllStringSubmatch(string(disk.Read(t, path)), -1) {
			words := strings.Fields(m[1])
			command := "convert"
			if regexp.MustCompile(`^[a-z]+$`).MatchString(words[0]) {
				command = words[0]
			}
			if help[command] == "" {
				out, err := tools.Try(converter, "help", command)
				if err != nil {
					continue // words of a sentence
				}
				help[command] = out
			}
			for _, word := range words {
				if word == "--" {
					break
				}
				flag := longFlag.FindString(word)
				if flag == "" {
					continue
				}
				count++
				if !regexp.MustCompile(`(^|[ ,])` + flag + `\b`).MatchString(help[command]) {
					t.Errorf("%s: %s has no %s: sdtconvert%s", filepath.Base(path), command, flag, m[1])
				}
			}
		}
	}
	if count < 30 {
		t.Errorf("%d flags were found", count)
	}
}

// TestVersions compares the versions that pages show with the program's.
func TestVersions(t *testing.T) {
	version := strings.Fields(tools.Must(t, converter, "version"))[1]
	for path, text := range map[string]string{"README.md": "sdtconvert_VERSION_amd64.deb", "docs/builds.md": "# sdtconvert VERSION\n"} {
		expect.Contains(t, string(disk.Read(t, tools.Root(path))), strings.Replace(text, "VERSION", version, 1), path)
	}
}

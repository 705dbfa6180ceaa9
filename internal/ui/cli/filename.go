package cli

import (
	"regexp"
	"strings"
)

// longestFileName bounds the bytes of a file name without its extension. File systems allow
// 255.
const longestFileName = 240

var (
	// notInFileNames matches characters and endings not allowed in file names on Windows.
	notInFileNames = regexp.MustCompile(`[<>:"/\\|?*[:cntrl:]]|[. ]$`)
	// devices matches the names of devices on Windows.
	devices = regexp.MustCompile(`(?i)^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)`)
)

// fileName turns a text into a file name, valid on Windows too.
func fileName(text string) string {
	name := strings.ToValidUTF8(text, "-")
	if len(name) > longestFileName {
		name = strings.ToValidUTF8(name[:longestFileName], "") + "---"
	}
	if name = notInFileNames.ReplaceAllString(name, "-"); name == "" {
		return "-"
	}
	if devices.MatchString(name) {
		return "_" + name
	}
	return name
}

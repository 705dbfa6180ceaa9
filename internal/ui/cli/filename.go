package cli

import (
	"regexp"
	"strings"
)

// longestFileName is how long a name of a file may be, in bytes, without what says its type: file systems take 255.
const longestFileName = 240

var (
	// notInFileNames are letters that no file of Windows can have in its name, nor a blank or a dot at its end.
	notInFileNames = regexp.MustCompile(`[<>:"/\\|?*[:cntrl:]]|[. ]$`)
	// devices are what Windows takes for devices, whatever stands behind a dot.
	devices = regexp.MustCompile(`(?i)^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)`)
)

// fileName is a text as the name of a file, on Windows, too.
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

package view

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// JoinCommand returns the shell command to register a cluster with a registration token. Every
// holder of the command can register as the token allows.
func JoinCommand(token, hubURL string, hubCA []byte, clientID string) string {
	return CommandLine("muster join", "--token", token, "--hub-url", hubURL, "--hub-ca", base64.StdEncoding.EncodeToString(hubCA),
		"--client-id", clientID)
}

// CommandLine returns a shell command with flags and values. It omits flags with an empty value.
// For a flag with a final =, the value follows directly.
func CommandLine(command string, flags ...string) string {
	for ; len(flags) > 0; flags = flags[2:] {
		switch flag, value := flags[0], flags[1]; {
		case value == "":
		case strings.HasSuffix(flag, "="):
			command += " " + flag + Quoted(value)
		default:
			command += " " + flag + " " + Quoted(value)
		}
	}
	return command
}

// plain matches text that needs no quotes in a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=-]+$`)

// Quoted returns a value as one word of a shell command.
func Quoted(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

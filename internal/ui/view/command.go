package view

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// JoinCommand is the line that registers a cluster by a registration token, for a shell. Whoever has it can register as the token allows.
func JoinCommand(token, hubURL string, hubCA []byte, clientID string) string {
	return CommandLine("muster join", "--token", token, "--hub-url", hubURL, "--hub-ca", base64.StdEncoding.EncodeToString(hubCA), "--client-id", clientID)
}

// CommandLine is a command with those of some flags, each with its value, that have one, for a shell. A flag that ends with = has its value behind that.
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

// plain is what a shell takes as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=-]+$`)

// Quoted is a value as a shell takes it for one word.
func Quoted(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

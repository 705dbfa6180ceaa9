package credential

import (
	"errors"
	"net/url"
	"strings"
)

// ParseServer checks the URL of a hub's API server and returns it in a canonical form for
// comparison.
func ParseServer(raw string) (string, error) {
	parsed, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" || parsed.User != nil ||
		parsed.RawQuery != "" || parsed.Fragment != "" {
		return "", errors.New("want https://host or https://host:port, the hub's API server as clusters reach it")
	}
	return strings.TrimRight(parsed.String(), "/"), nil
}

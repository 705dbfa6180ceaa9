// Package redaction removes secrets from foreign texts, such as logs and messages of Kubernetes or
// of an application.
//
// Its invariant: it only shortens or replaces; a text without a secret stays as it is.
package redaction

import "regexp"

// Mark replaces a removed value.
const Mark = "REDACTED"

// secret matches secrets in any text: tokens of ServiceAccounts, credentials in URLs and headers,
// private keys.
var secret = regexp.MustCompile(`(?s)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?` +
	`|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)` +
	`|(?i:bearer|basic) +[A-Za-z0-9+/=._~-]{8,}` +
	`|://[^/\s@"\\]+@`)

// inQuery matches secret parameters of a URL.
var inQuery = regexp.MustCompile(`(?i)((?:[?&]|\\u0026)[\w.-]*(?:token|secret|password|signature|sig|key|credential)=)[^&\s"'\\]+`)

// assigned matches a secret that an application names: `password=...`, `api_key: ...`.
var assigned = regexp.MustCompile(`(?i)([\w.-]*(?:token|secret|passw(?:or)?d|credentials?|(?:api|access|private)[_-]?key)["']?\s*[=:]\s*)` +
	`(?:"[^"]*"?|'[^']*'?|[^\s,;]+)`)

// Text returns a text without tokens, private keys, and credentials in URLs and headers.
func Text(text string) string {
	text = inQuery.ReplaceAllString(text, "${1}"+Mark)
	return secret.ReplaceAllStringFunc(text, func(found string) string {
		if found[0] == ':' {
			return "://" + Mark + "@"
		}
		return Mark
	})
}

// Application returns the text of an application, in addition without values of fields such as
// passwords.
func Application(text string) string { return assigned.ReplaceAllString(Text(text), "${1}"+Mark) }

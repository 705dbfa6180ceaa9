package redaction

import (
	"strings"
	"testing"
)

// FuzzText puts secrets into texts of strangers. They are gone from the result, however often it is
// redacted.
func FuzzText(f *testing.F) {
	f.Add("error: ", " is refused")
	f.Add("https://hub/?token=x&", "\n")
	f.Add(`"password": "`, `"`)
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
		for _, found := range []string{Text(before + secret + after), Application(before + secret + after)} {
			if strings.Contains(found, secret) {
				t.Errorf("%q is left", found)
			}
		}
		if found := Text(before + " https://user:c2VjcmV0@hub/" + after); strings.Contains(found, "user:c2VjcmV0@") {
			t.Errorf("%q is left", found)
		}
	})
}

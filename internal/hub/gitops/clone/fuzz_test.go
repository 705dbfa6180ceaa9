package clone

import (
	"slices"
	"testing"
)

// FuzzParseURL reads the address of a repository. An accepted address has a host, a scheme of the
// list and no password.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://git.example/team/web", "git@git.example:team/web.git", "ssh://git@git.example:22/x", "file:///etc", "ext::sh -c id",
		"https://user:password@git.example/x", "a:b", "-oProxyCommand=id:x", "https://[::1]/x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, repo string) {
		address, err := ParseURL(repo)
		if err != nil {
			return
		}
		if _, password := address.User.Password(); password || address.Hostname() == "" ||
			!slices.Contains([]string{"http", "https", "ssh"}, address.Scheme) {
			t.Errorf("%q became %q", repo, address)
		}
	})
}

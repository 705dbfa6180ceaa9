package webhook

import (
	"net/http"
	"testing"
)

// FuzzForges reads requests of strangers: parsing takes any body, and no signature fits without the
// key.
func FuzzForges(f *testing.F) {
	f.Add("X-Gitea-Event", []byte(`{"ref":"refs/heads/main","after":"a","repository":{"clone_url":"https://x/y"}}`), "sha256=00")
	f.Add("X-Gitlab-Event", []byte(`{"ref":"refs/tags/v1","checkout_sha":"b","project":{"git_http_url":"https://x/y"}}`), "")
	f.Add("X-Event-Key", []byte(`{"changes":[{"ref":{"id":"refs/heads/main"},"toHash":"a"}]}`), "sha256=")
	f.Add("X-Vss-Activityid", []byte(`{"resource":{"refUpdates":[{"name":"refs/heads/x"}],"repository":null}}`), "Basic Og==")
	f.Fuzz(func(t *testing.T, name string, body []byte, value string) {
		secrets := []map[string][]byte{nil, {}, {
			"github": []byte("a key nobody knows"), "gitea": []byte("a key nobody knows"), "gogs": []byte("a key nobody knows"),
			"gitlab": []byte("a key nobody knows"), "bitbucket": []byte("a key nobody knows"), "bitbucket-server": []byte("a key nobody knows"),
			"azure-username": []byte("azure"), "azure-password": []byte("a key nobody knows"),
		}}
		for _, forge := range forges {
			_, _ = forge.parse(body)
			header := http.Header{}
			header.Set(name, value)
			header.Set(forge.header, value)
			for _, signature := range []string{"X-Hub-Signature-256", "X-Hub-Signature", "X-Gitea-Signature", "X-Gogs-Signature", "Authorization"} {
				header.Set(signature, value)
			}
			forge.isPush(header)
			for _, secret := range secrets {
				if forge.verify(header, body, secret) {
					t.Errorf("%s accepts a request without its key", forge.name)
				}
			}
		}
	})
}

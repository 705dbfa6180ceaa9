package kubeconfig

import (
	"net/url"
	"testing"
	"time"
)

// FuzzParse reads kubeconfigs of tenants. An accepted kubeconfig runs no program, reads no
// file of the hub, and leads to its own server.
func FuzzParse(f *testing.F) {
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
	f.Add([]byte(head + "clusters: [{name: a, cluster: {server: 'https://edge:6443'}}]\nusers: [{name: a, user: {token: t}}]\n"))
	f.Add([]byte(head + "clusters: [{name: a, cluster: {server: 'https://edge', insecure-skip-tls-verify: true, proxy-url: 'http://p'}}]\n" +
		"users: [{name: a, user: {exec: {command: id, apiVersion: client.authentication.k8s.io/v1}}}]\n"))
	f.Add([]byte(head + "clusters: [{name: a, cluster: {server: 'https://edge', certificate-authority: /etc/passwd}}]\n" +
		"users: [{name: a, user: {tokenFile: /var/run/secrets/token, as: admin, as-groups: ['system:masters']}}]\n"))
	f.Add([]byte(`{"clusters":[{"name":"a","cluster":null}],"contexts":[{"name":"a"}],"users":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, problem := Parse("kubeconfig", text, time.Unix(1_800_000_000, 0))
		if problem != nil {
			return
		}
		c := k.Config
		if c.ExecProvider != nil || c.AuthProvider != nil || c.BearerTokenFile != "" || c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" {
			t.Errorf("a kubeconfig is accepted that runs a program or reads a file: %s", text)
		}
		if server, err := url.Parse(k.Server); err != nil || server.Host == "" || server.User != nil {
			t.Errorf("the server %q is accepted", k.Server)
		}
	})
}

package hublogin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func kubeconfig(user, more string) []byte {
	return []byte("apiVersion: v1\nkind: Config\nclusters: [{name: hub, cluster: {server: 'https://hub:6443'" + more + "}}]\n" +
		"contexts: [{name: hub, context: {cluster: hub, user: cloud}}]\ncurrent-context: hub\nusers: [{name: cloud, user: {" + user + "}}]\n")
}

func execUser(command string, args ...string) string {
	quoted, _ := json.Marshal(args) // of strings
	return fmt.Sprintf("exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: %q, args: %s}", command, quoted)
}

// script writes a program of the member's administrator.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plugin")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return path
}

func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
}

const answer = `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"s3cret"}}`

func TestAnIdentityComesFromAProgramATokenOrAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, user := range map[string]string{
		"a program": execUser(script(t, "echo '"+answer+"'")),
		"a token":   "token: s3cret",
		"a file":    "tokenFile: " + file,
		"a program that checks its input": "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, " +
			"provideClusterInfo: true, env: [{name: GREETING, value: hello}], command: " + script(t, `case "$GREETING $KUBERNETES_EXEC_INFO" in
hello*'"interactive":false'*) ;;
*) exit 3 ;;
esac
case "$KUBERNETES_EXEC_INFO" in
*'"server":"https://other"'*) echo '`+answer+`' ;;
esac`) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			login, err := Parse(kubeconfig(user, ""), "")
			if err != nil {
				t.Fatal(err)
			}
			identity, err := login.Identify(t.Context(), "https://other", time.Now())
			if err != nil || identity.Token != "s3cret" || identity.Certificate != nil {
				t.Errorf("got %+v, %v", identity, err)
			}
		})
	}
}

func TestBadKubeconfigsAreNamed(t *testing.T) {
	several := "apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {}}, {name: b, context: {}}]\n"
	for name, c := range map[string]struct {
		data          []byte
		context, says string
	}{
		"none":                         {nil, "", "its key kubeconfig is missing or empty"},
		"garbage with a secret":        {[]byte("token: s3cret: x"), "", "is not a kubeconfig"},
		"several contexts":             {[]byte(several), "", `has the contexts ["a" "b"] and no current-context`},
		"a missing context":            {[]byte(several), "c", `has no context "c", but ["a" "b"]`},
		"a wrong current context":      {[]byte(several + "current-context: c\n"), "", `current-context of its kubeconfig is "c"`},
		"a context without its user":   {[]byte(several), "a", `names the user ""`},
		"no context":                   {[]byte("apiVersion: v1\nkind: Config\n"), "", "has no context"},
		"no verification":              {kubeconfig("token: s3cret", ", insecure-skip-tls-verify: true"), "", "insecure-skip-tls-verify"},
		"a proxy":                      {kubeconfig("token: s3cret", ", proxy-url: 'http://x'"), "", "proxy-url"},
		"another name in TLS":          {kubeconfig("token: s3cret", ", tls-server-name: x"), "", "tls-server-name"},
		"a bad CA":                     {kubeconfig("token: s3cret", ", certificate-authority-data: eA=="), "", "certificate authority in"},
		"a CA in no file":              {kubeconfig("token: s3cret", ", certificate-authority: /none"), "", `file "/none", which does not exist`},
		"an auth-provider":             {kubeconfig("auth-provider: {name: gcp}", ""), "", "auth-provider"},
		"a password":                   {kubeconfig("username: u, password: s3cret", ""), "", "has a password"},
		"another user":                 {kubeconfig("token: s3cret, as: root", ""), "", "acts as another user"},
		"nothing":                      {kubeconfig("", ""), "", "neither exec, nor a token, nor a client certificate"},
		"a program without a name":     {kubeconfig(execUser(""), ""), "", "entry exec without command"},
		"a program in a relative path": {kubeconfig(execUser("./run"), ""), "", "use an absolute path"},
		"a program with a terminal": {kubeconfig("exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always, "+
			"command: x}", ""), "", "has no terminal"},
		"a program of an old version": {kubeconfig("exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}", ""), "", "v1alpha1"},
	} {
		_, err := Parse(c.data, c.context)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}

func TestBadIdentitiesAreNamed(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	const stable, beta = `"apiVersion":"client.authentication.k8s.io/v1"`, `"apiVersion":"client.authentication.k8s.io/v1beta1"`
	says := func(rest string) string { return `echo '{"kind":"ExecCredential",` + rest + `}'` }
	notRunnable := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(notRunnable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ user, says string }{
		"a program that is absent":       {execUser("muster-test-none"), `"muster-test-none", which is not in the agent's container`},
		"a path that is absent":          {execUser("/none/plugin"), `"/none/plugin", which is not in the agent's container`},
		"a file that is no program":      {execUser(notRunnable), "which the agent may not run"},
		"a program that fails":           {execUser(script(t, "echo no such role >&2; exit 4")), "failed (exit status 4): no such role"},
		"a program that answers junk":    {execUser(script(t, "echo s3cret")), "does not answer with an ExecCredential in JSON"},
		"a program of another version":   {execUser(script(t, says(beta))), "another kind or version"},
		"a program without a credential": {execUser(script(t, says(stable))), "without a credential"},
		"a program with an empty credential": {execUser(script(t, says(stable+`,"status":{}`))),
			"has no token and no client certificate"},
		"a program with an expired credential": {execUser(script(t, says(stable+
			`,"status":{"token":"s3cret","expirationTimestamp":"2030-01-02T03:04:04Z"}`))), "expired at 2030-01-02T03:04:04Z"},
		"a program with a huge answer": {execUser(script(t, "head -c 2000000 /dev/zero")), "more than 1048576 bytes"},
		"a token that expired":         {"token: " + jwt(`{"exp":1893553444}`), "the token of user \"cloud\" of the kubeconfig expired at"},
		"a file that is absent":        {"tokenFile: /none/token", `file "/none/token", which does not exist in the agent's container`},
		"a file that is a directory":   {"tokenFile: /tmp", "cannot be read"},
		"a file without an end":        {"tokenFile: /dev/zero", "more than 1048576 bytes"},
		"a token with a space":         {"token: 's3cret x'", "has a space"},
		"a certificate without a key":  {"client-certificate-data: eA==", "do not match, or are not PEM"},
	} {
		login, err := Parse(kubeconfig(c.user, ""), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = login.Identify(t.Context(), "https://hub", now)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}

// TestAProgramThatHangsEndsWithItsContext leaves a grandchild with the output open.
func TestAProgramThatHangsEndsWithItsContext(t *testing.T) {
	login, err := Parse(kubeconfig(execUser(script(t, "sleep 60 & sleep 60")), ""), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err = login.Identify(ctx, "https://hub", began); err == nil || !strings.Contains(err.Error(), "has not answered") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

package testgit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// FreeAddress returns a loopback address without a listener.
func FreeAddress(t testing.TB) string {
	t.Helper()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err == nil {
		err = free.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return free.Addr().String()
}

// Announce sends a push to the branch main, like GitLab's. An answer other than 200 is an error.
func Announce(webhook, token, commit, repository string) error {
	body := fmt.Sprintf(`{"ref": "refs/heads/main", "checkout_sha": %q, "project": {"git_http_url": %q}}`, commit, repository)
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+webhook, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Gitlab-Event", "Push Hook")
	request.Header.Set("X-Gitlab-Token", token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

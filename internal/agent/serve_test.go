package agent

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

func TestReadinessMeansJoinedAndSaysWhyNot(t *testing.T) {
	s := standing{log: logr.Discard()}
	server := httptest.NewServer(health(s.get))
	defer server.Close()
	get := func(path string) (int, string) {
		t.Helper()
		response, err := http.Get(server.URL + path)
		check(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		check(t, err)
		return response.StatusCode, string(body)
	}
	steps := []struct {
		do   func()
		code int
		body string
	}{
		{func() { s.enter(Joining, "request clusters/r is Pending") }, 503, "Joining: request clusters/r is Pending\n"},
		{func() { s.enter(Joined, "sending the first beat") }, 503, "Joined: sending the first beat\n"},
		{func() { s.beat("joined as clusters/c") }, 200, "Joined: joined as clusters/c\n"},
		{func() { s.enter(Waiting, "refused") }, 503, "Waiting: refused\n"},
		{func() { s.beat("a late beat") }, 503, "Waiting: refused\n"},
	}
	for _, step := range steps {
		step.do()
		if code, body := get("/readyz"); code != step.code || body != step.body {
			t.Errorf("readyz: got %d %q, want %d %q", code, body, step.code, step.body)
		}
		if code, _ := get("/healthz"); code != 200 {
			t.Errorf("healthz: got %d", code)
		}
	}
}

func TestPortInUseIsAnErrorThatNamesTheFlag(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer taken.Close()
	err = serve(t.Context(), taken.Addr().String(), flagHealth, http.NotFoundHandler())
	if err == nil || !strings.Contains(err.Error(), flagHealth) || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"0", "", "[127.1.2.3]:0", "127.0.0.1:0", "[::]:0", ":0"} {
		if err := serve(t.Context(), address, flagMetrics, metrics()); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestCommandSaysWhatIsMissing(t *testing.T) {
	t.Setenv("NAMESPACE", "")
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for args, want := range map[string]string{
		"":                              "--namespace or env NAMESPACE is required: the namespace in which the agent runs",
		"--namespace x":                 "--kubeconfig or env KUBECONFIG is required outside of a Pod",
		"--namespace x --kubeconfig /n": "reading kubeconfig /n",
	} {
		command := NewCommand()
		command.SetArgs(strings.Fields(args))
		if err := command.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("muster-agent %s: got %v, want %q", args, err, want)
		}
	}
}

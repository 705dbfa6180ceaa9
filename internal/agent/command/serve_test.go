package command

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-fleet/muster/internal/agent"
)

func TestReadinessMeansJoinedAndSaysWhyNot(t *testing.T) {
	for _, step := range []struct {
		state  agent.State
		reason string
		joined bool
		code   int
		remedy string
	}{
		{agent.Joining, "request clusters/r is Pending", false, 503, ""},
		{
			agent.BadInput, "secret fleet-agent-bootstrap: it has no token", false, 503,
			"What to do: Correct the object in the message. The agent notices the change at once.\n",
		},
		{agent.Joined, "sending the first heartbeat", false, 503, ""},
		{agent.Joined, "joined as clusters/c", true, 200, ""},
	} {
		server := httptest.NewServer(health(func() (agent.State, string, bool) { return step.state, step.reason, step.joined }))
		get := func(path string) (int, string) {
			response, err := http.Get(server.URL + path)
			check(t, err)
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			check(t, err)
			return response.StatusCode, string(body)
		}
		if code, body := get("/readyz"); code != step.code || body != string(step.state)+": "+step.reason+"\n"+step.remedy {
			t.Errorf("readyz: got %d %q, want %+v", code, body, step)
		}
		if code, _ := get("/healthz"); code != 200 {
			t.Errorf("healthz: got %d", code)
		}
		server.Close()
	}
}

func TestStartupEndsWhenTheAgentHasJoinedOrAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		joined := false
		handler := health(func() (agent.State, string, bool) { return agent.Joining, "request clusters/r is Pending", joined })
		codes := func() (codes [3]int) {
			for i, path := range []string{"/healthz?until=joined", "/healthz", "/readyz"} {
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				codes[i] = recorder.Code
			}
			return codes
		}
		for _, step := range []struct {
			after  time.Duration
			joined bool
			want   [3]int
		}{
			{0, false, [3]int{503, 200, 503}},
			{0, true, [3]int{200, 200, 200}},
			{59 * time.Second, false, [3]int{503, 200, 503}},
			{time.Second, false, [3]int{200, 200, 503}},
			{time.Hour, true, [3]int{200, 200, 200}},
		} {
			time.Sleep(step.after)
			joined = step.joined
			if got := codes(); got != step.want {
				t.Errorf("%+v: got %v", step, got)
			}
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
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
		"":                              "--namespace or env NAMESPACE is required: the namespace of the agent",
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

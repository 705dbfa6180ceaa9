package hub_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/hub/server"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// led waits until a holder renews the Lease after a time.
func (f fixture) led(holder string, after time.Time) {
	f.t.Helper()
	f.eventually(holder+" leads", func() error {
		var lease coordinationv1.Lease
		if err := f.Get(context.Background(), types.NamespacedName{Namespace: naming.SystemNamespace, Name: "muster-hub"}, &lease); err != nil {
			return err
		}
		if by, at := *lease.Spec.HolderIdentity, lease.Spec.RenewTime.Time; by != holder || !at.After(after) {
			return fmt.Errorf("%s led at %s", by, at)
		}
		return nil
	})
}

func TestAContainerThatIsStartedAgainLeadsAtOnceAndAnotherPodOnlyAfterTheLease(t *testing.T) {
	f := newAlone(t, "", "--leader-elect=true")
	hub := f.hub
	as := func(uid string) {
		hub.Kill()
		hub.Env = []string{"POD_NAME=hub-0", "POD_UID=" + uid}
	}
	as("first")
	hub.Start()
	f.led("hub-0_first", time.Time{})

	check := func() (string, error) {
		output, err := exec.Command(testkube.Build(t, "muster-hub"),
			append([]string{"check"}, hub.Arguments("--kubeconfig", "--namespace")...)...).CombinedOutput()
		return string(output), err
	}
	if said, err := check(); err != nil || !strings.Contains(said, "hub-0 leads") {
		t.Errorf("the check of a hub that leads says %q (%v)", said, err)
	}

	began := time.Now()
	hub.Kill()
	if said, err := check(); err == nil || !strings.Contains(said, "no hub leads: the last one was hub-0") {
		t.Errorf("the check of a hub that is gone says %q (%v)", said, err)
	}
	hub.Start()
	f.led("hub-0_first", began)

	hub.Kill()
	hub.Start()
	began = time.Now()
	f.led("hub-0_first", began)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("a container that was started again leads after %s", took)
	}

	as("second")
	began = time.Now()
	metrics := free(t)
	testkube.RunWith(t, "muster-hub", hub.Env,
		append(hub.Arguments("--kubeconfig", "--namespace"), "--metrics-bind-address", metrics, "--health-probe-bind-address", "0",
			"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms")...)
	f.led("hub-0_second", began)
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("another Pod leads after %s, when the one before may still do so", took)
	}
	var lease coordinationv1.Lease
	f.check(f.get(&lease, naming.SystemNamespace, "muster-hub"))
	if next := *lease.Spec.LeaseDurationSeconds; next != 4 {
		t.Errorf("the next may lead after %d s", next)
	}
	f.eventually("who leads serves what it counts", func() error {
		response, err := http.Get("http://" + metrics + "/metrics")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		for _, want := range []string{`muster_hub_members{state="Lost"} `, `muster_hub_requests{state="Pending"} `,
			`muster_hub_bundles{state="ErrApplied"} `, "muster_hub_placements{",
			"muster_hub_delivery_window 128", `muster_hub_removals_held{kind="Bundle"} `, `muster_hub_sources_failing{kind="GitRepo"} `} {
			if err == nil && !strings.Contains(string(text), want) {
				err = fmt.Errorf("there is no %s", want)
			}
		}
		return err
	})
}

// free is an address of this machine that nothing has taken yet.
func free(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestTimesByWhichTwoHubsWouldLeadAreRefused(t *testing.T) {
	for _, test := range []struct{ lease, renew, retry, want string }{
		{"15s", "10s", "2s", ""},
		{"4s", "3s", "500ms", ""},
		{"30s", "25s", "10s", ""}, // Rancher Fleet's
		{
			"500ms", "400ms", "100ms", "--leader-elect-lease-duration 500ms (leaderElection.leaseDuration of the chart) must be at least a second",
		},
		{
			"10s", "10s", "2s", "--leader-elect-lease-duration 10s (leaderElection.leaseDuration of the chart) must be longer than " +
				"--leader-elect-renew-deadline 10s",
		},
		{"15s", "6s", "5s", "--leader-elect-renew-deadline 6s (leaderElection.renewDeadline of the chart) must be longer than 6s"},
		{"15s", "10s", "0s", "--leader-elect-retry-period, which is more than 0"},
		{"90s", "60s", "11s", "--leader-elect-retry-period 11s (leaderElection.retryPeriod of the chart) may be 10s at most"},
	} {
		command := server.NewCommand()
		command.SetErr(io.Discard)
		command.SetArgs([]string{"--namespace", "any", "--kubeconfig", filepath.Join(t.TempDir(), "none"),
			"--leader-elect-lease-duration", test.lease, "--leader-elect-renew-deadline", test.renew, "--leader-elect-retry-period", test.retry})
		err := command.Execute()
		if err == nil || !strings.Contains(err.Error(), test.want) || test.want == "" && strings.Contains(err.Error(), "--leader-elect") {
			t.Errorf("%s, %s, %s: %v", test.lease, test.renew, test.retry, err)
		}
	}
}

package hub_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/server"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// clockVariable makes a hub of the test binary, whose clock is ahead by so much; KUBECONFIG
// says of which cluster.
const clockVariable = "MUSTER_TEST_HUB_CLOCK"

// runWithWrongClock runs that hub and returns the exit code.
func runWithWrongClock(by string) int {
	log := logging.New(false)
	ctrl.SetLogger(logging.Libraries(log))
	ahead, err := time.ParseDuration(by)
	if err == nil {
		err = runHub(logr.NewContext(ctrl.SetupSignalHandler(), log), wrongClock{by: ahead})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runHub(ctx context.Context, clock wrongClock) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		return err
	}
	return server.Run(ctx, config, server.Options{Namespace: naming.SystemNamespace, MetricsAddress: "0", ProbeAddress: "0", Clock: clock})
}

// TestAHubWhoseClockIsWrongLosesNobodyAndEndsNothingEarly lets a hub with a right clock be
// followed by one whose clock is ahead, and that by one whose clock is behind. The API
// server's clock is right.
func TestAHubWhoseClockIsWrongLosesNobodyAndEndsNothingEarly(t *testing.T) {
	f := newAlone(t, "")
	_, values := f.token("limited", "4h")
	stays := f.join(values, map[string]any{"clientID": "stays"})
	first := f.untilReady(naming.Cluster("stays"), "Ready")
	since := kube.FindCondition(first.Status.Conditions, fleet.ConditionReady).LastTransitionTime
	credential := string(stays.stored().Data["token"])
	kubeconfig := clientcmd.RecommendedConfigPathEnvVar + "=" + f.hub.Arguments("--kubeconfig")[1]
	self, err := os.Executable()
	f.check(err)
	running := f.hub
	for _, by := range []string{"1h", "-1h"} {
		running.Kill()
		running = testkube.RunWith(t, self, []string{clockVariable + "=" + by, kubeconfig})
		native, legacy := naming.Cluster("native"+by), f.legacyJoinAs(values, "legacy"+by, "r4nd0m"+by+f.workspace)
		f.eventually("the agent of Rancher Fleet beats", func() error { return legacy.beat(time.Now()) })
		dies := f.join(values, map[string]any{"clientID": "native" + by})
		f.untilReady(native, "Ready")
		dies.stop()
		f.untilReady(native, "AgentLost")
		now := f.untilReady(first.Name, "Ready")
		if at := kube.FindCondition(now.Status.Conditions, fleet.ConditionReady).LastTransitionTime; at != since || now.UID != first.UID {
			t.Errorf("%s: the member that lives was not ready all the time: since %s, before since %s", by, at, since)
		}
		if token := string(stays.stored().Data["token"]); token != credential {
			t.Errorf("%s: its credential was renewed, a day before it is due", by)
		}
		var limited fleet.ClusterRegistrationToken
		f.check(f.get(&limited, f.workspace, "limited"))
		if ready := kube.FindCondition(limited.Status.Conditions, fleet.ConditionReady); ready == nil || ready.Status != corev1.ConditionTrue {
			t.Errorf("%s: the token is %+v", by, ready)
		}
	}
}

package hub_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAStandbyThatTakesOverActsOnWhatIsSoNow: the standby began under settings by which it would
// take a token back, and before a member was lost.
func TestAStandbyThatTakesOverActsOnWhatIsSoNow(t *testing.T) {
	f := newAlone(t, `{"importLoopback":true,"registrationTokenTTL":{"required":true}}`, "--leader-elect=true")
	f.hub.Kill()
	f.hub.Env = []string{"POD_NAME=hub-0", "POD_UID=first"}
	f.hub.Start()
	f.led("hub-0_first", time.Time{})
	standby := testkube.Run(t, "muster-hub", append(f.hub.Arguments("--kubeconfig", "--namespace"),
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--leader-elect=true")...)
	standby.Kill()
	standby.Env = []string{"POD_NAME=hub-1", "POD_UID=second"}
	standby.Start()

	f.configure(testkube.HubSettings)
	_, values := f.token("endless", "")
	var before corev1.Secret
	f.check(f.get(&before, f.workspace, "endless"))
	c := f.crowd(20)
	f.join(values, map[string]any{"clientID": "native"})
	native := f.workspace + "/" + f.untilReady(naming.Cluster("native"), "Ready").Name
	silent := c.members[0]
	c.silence(silent)
	lost := silent.until("Healthy", metav1.ConditionFalse, "AgentLost").LastTransitionTime
	alarms := f.alarms()

	f.hub.Kill()
	f.led("hub-1_second", time.Now())
	f.register("proof").until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	f.token("later", "")
	// A budget after the take-over the new leader judges by itself.
	next := c.members[1]
	c.silence(silent, next)
	next.until("Healthy", metav1.ConditionFalse, "AgentLost")

	if now := silent.until("Healthy", metav1.ConditionFalse, "AgentLost").LastTransitionTime; !now.Equal(&lost) {
		t.Errorf("%s was lost at %s, and is said to be lost since %s", silent.name, lost, now)
	}
	for _, m := range c.members[2:] {
		if raised := alarms.of(m.name); raised != "" {
			t.Errorf("%s, which lives: %s", m.name, raised)
		}
	}
	if raised := alarms.of(native); raised != "" {
		t.Errorf("%s, which lives: %s", native, raised)
	}
	var after corev1.Secret
	if f.check(f.get(&after, f.workspace, "endless")); after.UID != before.UID {
		t.Error("the token of before has other values")
	}
	if _, err := f.ask(values, fleet.ClusterRegistrationSpec{ClientID: "late"}); err != nil {
		t.Errorf("the token of before no longer counts: %v", err)
	}
}

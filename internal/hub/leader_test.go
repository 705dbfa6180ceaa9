package hub_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

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
		output, err := exec.Command(testkube.Build(t, "muster-hub"), append([]string{"check"}, hub.Arguments("--kubeconfig", "--namespace")...)...).CombinedOutput()
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
	hub.Start()
	f.led("hub-0_second", began)
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("another Pod leads after %s, when the one before may still do so", took)
	}
}

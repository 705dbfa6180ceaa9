package bundle

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/testkube"
)

// hook is a Job before the installation, which the test plays.
var hook = file("hook.yaml", `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {"helm.sh/hook": "pre-install,pre-upgrade"}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: nowhere.example.com/a}]}
`)

// underWay waits until the hook runs, and returns which one it is.
func (r *rig) underWay() types.UID {
	r.t.Helper()
	job := &batchv1.Job{}
	r.eventually("the hook runs", func() error {
		return r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: "migrate"}, job)
	})
	return job.UID
}

// complete lets the hook end well.
func (r *rig) complete() {
	r.t.Helper()
	r.completeJob("migrate")
}

// completeJob lets a Job end well.
func (r *rig) completeJob(name string) {
	r.t.Helper()
	job := &batchv1.Job{}
	r.eventually("Kubernetes has started the hook", func() error {
		if err := r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: name}, job); err != nil {
			return err
		}
		if job.Status.StartTime == nil {
			return errors.New("it has not")
		}
		return nil
	})
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"active":0,"ready":0,"succeeded":1,"completionTime":%q,"conditions":[`+
		`{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":%q},{"type":"Complete","status":"True","lastTransitionTime":%q}]}}`,
		now, now, now)
	r.check(r.kube.Status().Patch(r.t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// prints waits until a program has printed all of that in one line.
func (r *rig) prints(p *program, parts ...string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("it prints %q", parts), func() error {
		return hasLine(p.output.String(), parts...)
	})
}

func TestHookThatRunsWhileTheAgentIsReplacedRunsOnce(t *testing.T) {
	r := newRig(t)
	binary := testkube.Build(t, protocol.Program)
	r.place("web", fleet.BundleDeploymentOptions{}, hook, configMap("web", "one"))
	first := r.program(binary, r.cluster.Config.Host)
	uid := r.underWay()
	second := r.program(binary, r.cluster.Config.Host)
	r.prints(second, "Deployer waits for another deployer to end")
	r.check(first.Process.Signal(syscall.SIGTERM))
	r.place("db", fleet.BundleDeploymentOptions{}, configMap("db", "one"))
	r.prints(second, "Deployer waits for another deployer to end")
	if again := r.underWay(); again != uid {
		t.Error("the hook was started again")
	}
	r.complete()
	if err := <-first.exited; err != nil {
		t.Errorf("the first one ended with %v:\n%s", err, first.output)
	}
	r.until("db", fleet.StateReady)
	if found := r.until("web", fleet.StateReady); found.Status.Release != r.target+"/web:1" {
		t.Errorf("it was deployed again: %s", found.Status.Release)
	}
	if again := r.underWay(); again != uid {
		t.Error("the hook ran twice")
	}
	for _, printed := range []string{first.output.String(), second.output.String()} {
		if strings.Contains(printed, "cut off") {
			t.Errorf("a live revision was taken for a dead one:\n%s", printed)
		}
	}
	histories := &corev1.SecretList{}
	r.check(r.kube.List(t.Context(), histories, client.InNamespace(r.target), client.MatchingLabels{"owner": "helm", "name": "web"}))
	if len(histories.Items) != 1 {
		t.Errorf("there are %d revisions", len(histories.Items))
	}
}

func TestDeployerThatIsKilledIsSucceededWhenItsLeaseExpires(t *testing.T) {
	r := newRig(t)
	binary := testkube.Build(t, protocol.Program)
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	first := r.program(binary, r.cluster.Config.Host)
	r.until("web", fleet.StateReady)
	second := r.program(binary, r.cluster.Config.Host)
	r.prints(second, "Deployer waits for another deployer to end")
	r.check(first.Process.Signal(syscall.SIGKILL))
	<-first.exited
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	if got, err := r.data("web"); err != nil || got != "two" {
		t.Errorf("the data is %q, %v", got, err)
	}
}

func TestDeployerThatLosesItsLeaseEndsAtOnce(t *testing.T) {
	r := newRig(t)
	r.place("web", fleet.BundleDeploymentOptions{}, hook, configMap("web", "one"))
	first := r.program(testkube.Build(t, protocol.Program), r.cluster.Config.Host)
	r.underWay()
	lease := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	lease.Namespace, lease.Name = r.agent, "fleet-agent"
	r.check(r.kube.Patch(t.Context(), lease, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"holderIdentity":"somebody else","leaseDurationSeconds":60}}`))))
	err := <-first.exited
	var status interface{ ExitCode() int }
	if !errors.As(err, &status) || status.ExitCode() != protocol.ExitLeaseLost {
		t.Errorf("it ended with %v:\n%s", err, first.output)
	}
}

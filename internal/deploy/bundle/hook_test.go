package bundle

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/testkube"
)

// revision waits until a revision of the release web has that status.
func (r *rig) revision(version, status string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("revision %s is %s", version, status), func() error {
		found := &corev1.SecretList{}
		if err := r.kube.List(r.t.Context(), found, client.InNamespace(r.target), client.MatchingLabels{
			"name": "web", "version": version, "status": status,
		}); err != nil {
			return err
		}
		if len(found.Items) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
}

func TestHookOfADeployerThatIsKilledRunsOnce(t *testing.T) {
	for name, completes := range map[string]bool{"one that runs": false, "one that ends before the next deployer begins": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			binary := testkube.Build(t, protocol.Program)
			r.place("web", fleet.BundleDeploymentOptions{}, hook, configMap("web", "one"))
			first := r.program(binary, r.cluster.Config.Host)
			uid := r.underWay()
			r.check(first.Process.Signal(syscall.SIGKILL))
			<-first.exited
			if completes {
				r.complete()
			}
			r.program(binary, r.cluster.Config.Host)
			if !completes {
				r.revision("2", "pending-install")
				r.until("web", fleet.StateWaitApplied, "Helm waits for its hooks")
				r.complete()
			}
			r.until("web", fleet.StateReady)
			if again := r.underWay(); again != uid {
				t.Error("the hook ran twice")
			}
		})
	}
}

func TestHookOfADeployerThatLosesItsLeaseRunsOnce(t *testing.T) {
	r := newRig(t)
	binary := testkube.Build(t, protocol.Program)
	r.place("web", fleet.BundleDeploymentOptions{}, hook, configMap("web", "one"))
	first := r.program(binary, r.cluster.Config.Host)
	uid := r.underWay()
	lease := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	lease.Namespace, lease.Name = r.agent, "fleet-agent"
	r.check(r.kube.Patch(t.Context(), lease,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"another","leaseDurationSeconds":60}}`))))
	<-first.exited
	r.check(r.kube.Delete(t.Context(), lease))
	r.program(binary, r.cluster.Config.Host)
	r.revision("2", "pending-install")
	r.complete()
	r.until("web", fleet.StateReady)
	if again := r.underWay(); again != uid {
		t.Error("the hook ran twice")
	}
}

func TestHookThatHasSucceededAndGoneIsNotRunAgain(t *testing.T) {
	r := newRig(t)
	binary := testkube.Build(t, protocol.Program)
	goes := hook
	goes.Content = strings.Replace(hook.Content, `"pre-install,pre-upgrade"`,
		`"pre-install,pre-upgrade", "helm.sh/hook-delete-policy": hook-succeeded`, 1)
	waits := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TimeoutSeconds: 600}}
	r.place("web", waits, goes, file("never.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  selector: {matchLabels: {app: never}}
  template:
    metadata: {labels: {app: never}}
    spec: {containers: [{name: a, image: nowhere.example.com/a}]}
`))
	first := r.program(binary, r.cluster.Config.Host)
	r.underWay()
	r.complete()
	applied := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	r.eventually("the objects are applied", func() error {
		return r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "never"}, applied)
	})
	r.check(first.Process.Signal(syscall.SIGKILL))
	<-first.exited
	// Helm does not wait for paused objects. It would wait for the hook, but the test does not
	// complete the hook again.
	r.check(r.kube.Patch(t.Context(), applied, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`))))
	r.program(binary, r.cluster.Config.Host)
	r.revision("2", "deployed")
	job := &batchv1.Job{}
	if err := r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "migrate"}, job); !apierrors.IsNotFound(err) {
		t.Errorf("the hook ran again: %v", err)
	}
}

func TestHookWithTheNumberOfItsRevisionGoesOn(t *testing.T) {
	r := newRig(t)
	binary := testkube.Build(t, protocol.Program)
	r.place("web", fleet.BundleDeploymentOptions{}, chartOf()...)
	first := r.program(binary, r.cluster.Config.Host)
	r.until("web", fleet.StateReady)
	numbered := strings.Replace(hook.Content, `annotations: {`, `annotations: {revision: "{{ .Release.Revision }}", `, 1)
	r.place("web", fleet.BundleDeploymentOptions{}, chartOf(file("templates/hook.yaml", numbered))...)
	uid := r.underWay()
	r.check(first.Process.Signal(syscall.SIGKILL))
	<-first.exited
	r.program(binary, r.cluster.Config.Host)
	r.revision("3", "pending-upgrade")
	r.until("web", fleet.StateWaitApplied, "Helm waits for its hooks")
	if again := r.underWay(); again != uid {
		t.Fatal("the hook is started again")
	}
	r.complete()
	r.until("web", fleet.StateReady)
	if again := r.underWay(); again != uid {
		t.Error("the hook ran twice")
	}
}

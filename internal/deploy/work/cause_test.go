package work

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/testkube"
)

const (
	webDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: fleet-member-NAME}, spec: {
		selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "shop/web:9"}]}}}}`
	unboundClaim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: fleet-member-NAME}, spec: {
		accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}`
	failingJob = `{apiVersion: batch/v1, kind: Job, metadata: {name: migrate, namespace: fleet-member-NAME}, spec: {backoffLimit: 0,
		template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`
)

// untilSaid waits until the condition Available of a manifest has a reason, and its message a part.
func (r *rig) untilSaid(work *placement.Work, ordinal int, reason, part string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("manifest %d says %q", ordinal, part), func() error {
		r.refresh(work)
		if len(work.Status.ManifestConditions) <= ordinal {
			return fmt.Errorf("status %+v", work.Status)
		}
		if is := r.of(work, ordinal, placement.ConditionAvailable); is.Reason != reason || !strings.Contains(is.Message, part) {
			return fmt.Errorf("it is %+v", is)
		}
		return nil
	})
}

func TestAManifestThatIsNotAvailableSaysWhyItsPodsDoNotRun(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, webDeployment, unboundClaim, failingJob)
	app := map[string]string{"app": "web"}
	testkube.PlayScheduler(t, r, r.namespace, app, "0/3 nodes are available: 3 Insufficient cpu.")
	r.untilSaid(work, 0, reasons.ManifestNotAvailableYet, "; Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.")
	// Nothing of the Deployment changes when its image cannot be pulled.
	testkube.PlayBinder(t, r, r.namespace, "data", "ProvisioningFailed", `storageclass.storage.k8s.io "none" not found`)
	testkube.PlayKubelet(t, r, r.namespace, app, corev1.PodPending, corev1.ContainerStatus{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: `"shop/web:9": not found`}},
	})
	testkube.PlayKubelet(t, r, r.namespace, map[string]string{"batch.kubernetes.io/job-name": "migrate"}, corev1.PodFailed,
		corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}})
	const pull = `; container web: ErrImagePull: "shop/web:9": not found`
	r.untilSaid(work, 0, reasons.ManifestNotAvailableYet, pull)
	r.untilSaid(work, 1, reasons.ManifestNotAvailableYet,
		`; PersistentVolumeClaim data: Pending: ProvisioningFailed: storageclass.storage.k8s.io "none" not found`)
	r.untilSaid(work, 2, reasons.ManifestFailed, "; container c: OOMKilled, exit code 137")
	if all := r.until(work, placement.ConditionAvailable, placement.ReasonSomeUnavailable); !strings.Contains(all.Message, pull) {
		t.Errorf("the Work says %q", all.Message)
	}
}

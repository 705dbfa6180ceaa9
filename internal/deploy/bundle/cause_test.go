package bundle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	quantities "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

// web is a Deployment with one Pod.
func web(name string) fleet.BundleResource {
	return file("web.yaml", fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: 1,
		selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: web, image: "shop/web:9",
		env: [{name: PASSWORD, value: hunter2}]}]}}}}`, name))
}

// nonReady returns the messages of the first object that is not ready.
func nonReady(t *testing.T, of *fleet.BundleDeployment) []string {
	t.Helper()
	if len(of.Status.NonReadyStatus) == 0 {
		t.Fatalf("no object is not ready: %+v", of.Status)
	}
	return of.Status.NonReadyStatus[0].Summary.Message
}

func TestADeploymentThatIsNotReadySaysWhyItsPodsDoNotRun(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, web("web"))
	app := map[string]string{"app": "web"}
	testkube.PlayScheduler(t, r.kube, r.target, app, "0/3 nodes are available: 3 Insufficient cpu.")
	r.until("web", fleet.StateNotReady, "; Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.")
	// Nothing of the Deployment changes when its image cannot be pulled.
	testkube.PlayKubelet(t, r.kube, r.target, app, corev1.PodPending, corev1.ContainerStatus{State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "shop/web:9"`},
	}})
	found := r.until("web", fleet.StateNotReady, `; container web: ImagePullBackOff: Back-off pulling image "shop/web:9"`)
	if said := nonReady(t, found); len(said) != 2 || !strings.HasPrefix(said[1], "container web: ImagePullBackOff: ") {
		t.Errorf("the messages of the object: %q", said)
	}
	testkube.PlayKubelet(t, r.kube, r.target, app, corev1.PodRunning, corev1.ContainerStatus{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 3, Reason: "Error", Message: "starting\nno such host: db, PASSWORD=hunter2\n",
		}},
	})
	found = r.until("web", fleet.StateNotReady, "; container web: CrashLoopBackOff: Error, exit code 3: no such host: db, PASSWORD=REDACTED")
	if text := fmt.Sprint(found.Status); strings.Contains(text, "hunter2") {
		t.Errorf("a secret is in the status: %s", text)
	}
}

func TestAQuotaThatRefusesPodsIsTheCause(t *testing.T) {
	r := newRig(t)
	r.start()
	r.create(&corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: r.target},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: quantities.MustParse("0")}},
	})
	r.eventually("the quota counts", func() error {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: r.target}}
		if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil || len(quota.Status.Hard) == 0 {
			return fmt.Errorf("%+v, %w", quota.Status, err)
		}
		return nil
	})
	r.place("web", fleet.BundleDeploymentOptions{}, web("web"))
	r.place("job", fleet.BundleDeploymentOptions{}, migrates("", ""))
	r.until("web", fleet.StateNotReady, `FailedCreate: pods "web-*" is forbidden: exceeded quota: none`)
	r.until("job", fleet.StateNotReady, `FailedCreate: Error creating: pods "migrate-*" is forbidden: exceeded quota: none`)
}

func TestAFailedJobSaysWhyItsPodFailed(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("job", fleet.BundleDeploymentOptions{}, migrates("backoffLimit: 0, ", "migrate"))
	testkube.PlayKubelet(t, r.kube, r.target, map[string]string{"batch.kubernetes.io/job-name": "migrate"}, corev1.PodFailed,
		corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 2, Reason: "Error", Message: "relation users exists",
		}}})
	r.until("job", fleet.StateNotReady, "the Job failed: BackoffLimitExceeded", "; container c: Error, exit code 2: relation users exists")
}

func TestAHookThatFailedSaysWhyItsPodFailed(t *testing.T) {
	r := newRig(t)
	r.hookWait = time.Second
	run := r.start()
	failing := migrates("backoffLimit: 0, ", "migrate")
	failing.Content = strings.Replace(failing.Content, "name: migrate}", `name: migrate, annotations: {helm.sh/hook: pre-install}}`, 1)
	soon := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TimeoutSeconds: 5}} // the next attempt waits for a Pod that does not run
	r.place("job", soon, failing, configMap("web", "one"))
	job := map[string]string{"batch.kubernetes.io/job-name": "migrate"}
	failed := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 2, Reason: "Error", Message: "relation users exists",
	}}}
	testkube.PlayKubelet(t, r.kube, r.target, job, corev1.PodFailed, failed)
	r.until("job", fleet.StateErrApplied, "; Job "+r.target+"/migrate: container c: Error, exit code 2: relation users exists")

	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("drained", "one"), jobHook("drain", "pre-delete", ""))
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.begins("drain")
	testkube.PlayKubelet(t, r.kube, r.target, map[string]string{"batch.kubernetes.io/job-name": "drain"}, corev1.PodPending,
		corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "ErrImagePull", Message: "no such image",
		}}})
	r.blocked(run, "RemovalBlocked", "Job "+r.target+"/drain of release "+r.target+"/web:1 is waited for",
		"; container a: ErrImagePull: image \"nowhere.example.com/a\": no such image")
	r.completeJob("drain")
	r.untilRemoved(run, "web")
}

func TestAClaimThatIsNotBoundSaysWhy(t *testing.T) {
	r := newRig(t)
	r.start()
	claim := file("claim.yaml", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce],
		storageClassName: none, resources: {requests: {storage: 1Gi}}}}`)
	r.place("claim", fleet.BundleDeploymentOptions{}, claim)
	testkube.PlayBinder(t, r.kube, r.target, "data", "ProvisioningFailed", `storageclass.storage.k8s.io "none" not found`)
	r.until("claim", fleet.StateNotReady,
		`; PersistentVolumeClaim data: Pending: ProvisioningFailed: storageclass.storage.k8s.io "none" not found`)
	r.place("web", fleet.BundleDeploymentOptions{}, file("web.yaml", strings.Replace(web("web").Content, "containers:",
		"volumes: [{name: data, persistentVolumeClaim: {claimName: data}}], containers:", 1)))
	testkube.PlayScheduler(t, r.kube, r.target, map[string]string{"app": "web"}, "pod has unbound immediate PersistentVolumeClaims")
	r.until("web", fleet.StateNotReady, "; Unschedulable: pod has unbound immediate PersistentVolumeClaims; ",
		"PersistentVolumeClaim data: Pending: ProvisioningFailed: ")
}

// TestTheCauseIsReadWithTheRightsOfTheAccount has a quota, whose refusal the Deployment itself
// reports, and Pods that the agent could read.
func TestTheCauseIsReadWithTheRightsOfTheAccount(t *testing.T) {
	r := newRig(t)
	r.start()
	r.account("team", "deployments", "replicasets")
	team := fleet.BundleDeploymentOptions{ServiceAccount: "team"}
	r.place("web", team, web("web"))
	testkube.PlayKubelet(t, r.kube, r.target, map[string]string{"app": "web"}, corev1.PodPending, corev1.ContainerStatus{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not for the team"}},
	})
	found := r.until("web", fleet.StateNotReady, "; Pods may not be read: pods is forbidden: User "+
		fmt.Sprintf("%q", "system:serviceaccount:"+r.agent+":team")+" cannot list resource")
	if text := fmt.Sprint(found.Status); strings.Contains(text, "not for the team") {
		t.Errorf("the account reads Pods: %s", text)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: r.target}}
	r.change(role, func() { role.Rules[0].Resources = append(role.Rules[0].Resources, "pods") })
	r.until("web", fleet.StateNotReady, "; container web: ErrImagePull: ", "not for the team")
}

package cause

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"
)

// cluster is an API server with objects.
func cluster(t *testing.T, documents ...string) *fake.FakeDynamicClient {
	t.Helper()
	var objects []runtime.Object
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetNamespace("shop")
		objects = append(objects, object)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		pods: "PodList", claims: "PersistentVolumeClaimList", events: "EventList", replicaSets: "ReplicaSetList",
	}, objects...)
}

func objectOf(group, resource, name string) Object {
	return Object{
		GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
		NamespacedName:       types.NamespacedName{Namespace: "shop", Name: name}, UID: types.UID(name),
	}
}

const (
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: web}, spec: {selector: {matchLabels: {app: web}}}}`
	replicaSet = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, uid: web-1, labels: {app: web},
		ownerReferences: [{uid: web, controller: true}]}}`
)

// podWith is a Pod of an owner with one container in a state.
func podWith(name, owner, state string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, uid: %[1]s, labels: {app: web},
		ownerReferences: [{uid: %s, controller: true}]},
		status: {containerStatuses: [{name: c, image: i, state: {%s}}]}}`, name, owner, state)
}

func crash(code int) string { return fmt.Sprintf("terminated: {exitCode: %d, reason: Error}", code) }

func eventOf(name, uid, kind, reason, at string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: e%s}, type: %s, reason: %s, message: said, lastTimestamp: %q,
		involvedObject: {uid: %s}}`, name, kind, reason, at, uid)
}

func TestFindFollowsTheOwnersByUID(t *testing.T) {
	const waits = "waiting: {reason: ContainerCreating}"
	early, late := "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
	for name, test := range map[string]struct {
		of      Object
		objects []string
		want    []string
	}{
		"a Deployment, and Pods of others with its labels": {objectOf("apps", "deployments", "web"), []string{
			deployment, replicaSet, podWith("a", "web-1", crash(2)), podWith("b", "another", crash(3)), podWith("c", "web", crash(4)),
			strings.ReplaceAll(strings.Replace(replicaSet, "uid: web,", "uid: another,", 1), "web-1", "web-2"), podWith("d", "web-2", crash(5)),
		}, []string{"container c: Error, exit code 2"}},
		"a StatefulSet": {objectOf("apps", "statefulsets", "web"), []string{
			strings.Replace(deployment, "Deployment", "StatefulSet", 1), podWith("a", "web", crash(2)), podWith("b", "web-1", crash(3)),
		}, []string{"container c: Error, exit code 2"}},
		"an object of the same name and another UID": {
			Object{objectOf("apps", "deployments", "web").GroupVersionResource, objectOf("", "", "web").NamespacedName, "former"},
			[]string{deployment, replicaSet, podWith("a", "web-1", crash(2))}, nil,
		},
		"the last warning of a Pod that reports nothing": {objectOf("apps", "deployments", "web"), []string{
			deployment, replicaSet, podWith("a", "web-1", waits), eventOf("1", "a", "Warning", "FailedMount", early),
			eventOf("2", "a", "Warning", "FailedCreatePodSandBox", late), eventOf("3", "a", "Normal", "Pulling", "2026-01-01T00:00:02Z"),
			eventOf("4", "b", "Warning", "OfAnother", "2026-01-01T00:00:03Z"),
		}, []string{"FailedCreatePodSandBox: said"}},
		"a refusal of Pods, beside a Pod of before": {objectOf("apps", "replicasets", "web"), []string{
			strings.TrimSuffix(strings.Replace(deployment, "Deployment", "ReplicaSet", 1), "}") +
				`, status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "web-x2x4z" is forbidden'}]}}`,
			podWith("a", "web", crash(2)),
		}, []string{`FailedCreate: pods "web-*" is forbidden`, "container c: Error, exit code 2"}},
		"a workload without Pods": {objectOf("batch", "jobs", "web"), []string{
			strings.Replace(strings.Replace(deployment, "Deployment", "Job", 1), "apps/v1", "batch/v1", 1),
			eventOf("1", "web", "Warning", "FailedCreate", early),
		}, []string{"FailedCreate: said"}},
		"a claim": {objectOf("", "persistentvolumeclaims", "web"), []string{
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web, uid: web}, status: {phase: Pending}}`,
			eventOf("1", "web", "Normal", "FailedBinding", early),
		}, []string{"PersistentVolumeClaim web: Pending: FailedBinding: said"}},
		"an object of any other kind has its last warning": {objectOf("shop.example", "things", "web"), []string{
			eventOf("1", "web", "Warning", "SyncFailed", early),
		}, []string{"SyncFailed: said"}},
		"nothing is known": {objectOf("apps", "deployments", "web"), []string{deployment, replicaSet}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Find(t.Context(), cluster(t, test.objects...), test.of)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// refuses makes an API server answer lists of a resource with an error.
func refuses(c *fake.FakeDynamicClient, resource string, err error) {
	c.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func TestWhatMayNotBeReadIsSaidAsSuch(t *testing.T) {
	forbidden := apierrors.NewForbidden(pods.GroupResource(), "", fmt.Errorf("no right"))
	c := cluster(t, deployment, replicaSet, podWith("a", "web-1", crash(2)))
	refuses(c, "pods", forbidden)
	refuses(c, "events", forbidden)
	got := Find(t.Context(), c, objectOf("apps", "deployments", "web"))
	want := []string{"Pods may not be read: pods is forbidden: no right", "Events may not be read: pods is forbidden: no right"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Find(t.Context(), c, objectOf("shop.example", "things", "web")); got != nil {
		t.Errorf("an object without Pods: %v", got)
	}
	c = cluster(t, deployment, replicaSet)
	refuses(c, "replicasets", fmt.Errorf("timed out"))
	got = Find(t.Context(), c, objectOf("apps", "deployments", "web"))
	if diff := cmp.Diff([]string{"ReplicaSets cannot be read: timed out"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestALookComesOnlyWhenDue counts the requests of looks at one Deployment.
func TestALookComesOnlyWhenDue(t *testing.T) {
	c := cluster(t, deployment, replicaSet, podWith("a", "web-1", crash(2)))
	var looks Looks
	now := time.Unix(0, 0)
	requests := func(status string) int {
		before := len(c.Actions())
		round := looks.Begin(now)
		if got := round.Of(t.Context(), c, objectOf("apps", "deployments", "web"), status); len(got) != 1 {
			t.Errorf("the causes are %q", got)
		}
		if next := round.End(); !next.After(now) || next.Sub(now) > 6*time.Minute {
			t.Errorf("the next look is %s from now", next.Sub(now))
		}
		return len(c.Actions()) - before
	}
	const look = 3 // the Deployment, its ReplicaSets and Pods
	for _, step := range []struct {
		name   string
		after  time.Duration
		status string
		want   int
	}{
		{"the first look", 0, "0/3", look},
		{"nothing has changed", 100 * time.Millisecond, "0/3", 0},
		{"the status has changed, too soon", 100 * time.Millisecond, "1/3", 0},
		{"a second after the last look", time.Second, "1/3", look},
		{"the pause is over", 6 * time.Minute, "1/3", look},
		{"and has grown", 5 * time.Second, "1/3", 0},
	} {
		now = now.Add(step.after)
		if got := requests(step.status); got != step.want {
			t.Errorf("%s: %d requests, want %d", step.name, got, step.want)
		}
	}
	if next := looks.Begin(now).End(); !next.IsZero() || len(looks.known) != 0 {
		t.Errorf("an object that is ready again is looked at in %s", next)
	}
}

func TestOnlyAFewObjectsAreFollowed(t *testing.T) {
	c, looks := cluster(t), Looks{}
	round := looks.Begin(time.Unix(0, 0))
	for i := range 100 {
		round.Of(t.Context(), c, objectOf("shop.example", "things", fmt.Sprint(i)), "not ready")
	}
	if got := len(c.Actions()); got != maxFollowed {
		t.Errorf("%d requests", got)
	}
}

func TestACauseDoesNotRepeatTheStatus(t *testing.T) {
	c := cluster(t, eventOf("1", "web", "Warning", "BackoffLimitExceeded", "2026-01-01T00:00:00Z"))
	var looks Looks
	if got := looks.Begin(time.Unix(0, 0)).Of(t.Context(), c, objectOf("shop.example", "things", "web"),
		"the Job failed: BackoffLimitExceeded: said"); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

package readiness

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestReadinessFollowsTheObject(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   Result
	}{
		"a ConfigMap is ready once it is there": {
			`{apiVersion: v1, kind: ConfigMap}`, Result{State: Ready}},
		"a role, too": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}`, Result{State: Ready}},
		"a Deployment that nobody has looked at yet": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1}}`,
			Result{Progressing, "Deployment generation is 2, but latest observed generation is 1"}},
		"a Deployment with a pod missing": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 2},
			  status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1,
			  conditions: [{type: Available, status: "False"}]}}`,
			Result{Progressing, "Available: 1/2"}},
		"a Deployment that gave up": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1},
			  status: {observedGeneration: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`,
			Result{Failed, "Progress deadline exceeded"}},
		"a Deployment that has rolled out": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1},
			  status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
			  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}`,
			Result{State: Ready}},
		"a Deployment that its manifest pauses": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1, paused: true},
			  status: {observedGeneration: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]}}`,
			Result{Progressing, "Replicas: 0/1; spec.paused of the Deployment stops its rollout"}},
		"a paused Deployment that has rolled out before": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1, paused: true},
			  status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
			  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}`,
			Result{State: Ready}},
		"a StatefulSet with OnDelete and no Pod": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}},
			  status: {observedGeneration: 1, replicas: 2, readyReplicas: 1}}`, Result{Progressing, "Ready: 1/2"}},
		"a StatefulSet with OnDelete before its controller": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}}`,
			Result{Progressing, "Replicas: 0/2"}},
		"a StatefulSet with OnDelete and Pods of an earlier revision": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 2, updateStrategy: {type: OnDelete}},
			  status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 1, currentRevision: a, updateRevision: b}}`,
			Result{State: Ready}},
		"a DaemonSet with OnDelete and Pods of an earlier revision": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status:
			  {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberAvailable: 2, numberReady: 2}}`,
			Result{State: Ready}},
		"a DaemonSet with OnDelete and a Pod missing": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status:
			  {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberAvailable: 1, numberReady: 1}}`,
			Result{Progressing, "Available: 1/2"}},
		"a DaemonSet that rolls out": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: RollingUpdate}}, status:
			  {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberAvailable: 2, numberReady: 2}}`,
			Result{Progressing, "Updated: 0/2"}},
		"an APIService without its server": {
			`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "False",
			  reason: ServiceNotFound, message: service/x in "n" is not present}]}}`,
			Result{Progressing, `the API server cannot use the APIService: ServiceNotFound: service/x in "n" is not present`}},
		"an APIService that is new": {
			`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, spec: {service: {name: x, namespace: n}}}`,
			Result{Progressing, "the API server has not checked the APIService yet"}},
		"an APIService of the API server itself": {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService}`, Result{State: Ready}},
		"an APIService that is served": {
			`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "True"}]}}`,
			Result{State: Ready}},
		"a CRD that is not served yet": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}`, Result{Progressing, "Install in progress"}},
		"a custom resource that says nothing": {
			`{apiVersion: example.com/v1, kind: Widget}`, Result{Untracked, "its kind has no status to check"}},
		"a custom resource that is not ready": {
			`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "False", reason: Waiting, message: waits for ` +
				`paint}]}}`,
			Result{Progressing, "waits for paint"}},
		"a custom resource that is ready": {
			`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "True"}]}}`, Result{State: Ready}},
		"a Job that runs": {
			`{apiVersion: batch/v1, kind: Job, status: {startTime: "2026-01-01T00:00:00Z", active: 1}}`,
			Result{Progressing, "the Job is running: active 1, failed 0"}},
		"a Job that has begun": {
			`{apiVersion: batch/v1, kind: Job, status: {startTime: "2026-01-01T00:00:00Z"}}`, Result{Progressing, "the Job is running"}},
		"a Job that has not begun": {`{apiVersion: batch/v1, kind: Job}`, Result{Progressing, "the Job is not started"}},
		"a Job that has ended": {
			`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "True"}]}}`, Result{State: Ready}},
		"a Job that has failed": {
			`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: FailureTarget, status: "True"},
			  {type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}}`,
			Result{Failed, "the Job failed: BackoffLimitExceeded: Job has reached the specified backoff limit"}},
		"a Job that its manifest suspends": {
			`{apiVersion: batch/v1, kind: Job, metadata: {managedFields: [{manager: a, operation: Apply, fieldsType: FieldsV1,
			  fieldsV1: {"f:spec": {"f:suspend": {}}}}]}, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}}`,
			Result{Ready, "suspended by its manifest"}},
		"a Job that Helm replaced, and its manifest suspends": {
			`{apiVersion: batch/v1, kind: Job, spec: {suspend: true}}`, Result{Ready, "suspended by its manifest"}},
		"a Job that a queue suspends": {
			`{apiVersion: batch/v1, kind: Job, metadata: {managedFields: [{manager: a, operation: Apply, fieldsType: FieldsV1,
			  fieldsV1: {"f:spec": {"f:template": {}}}}]}, spec: {suspend: true}}`,
			Result{Progressing, "the Job is suspended, though its manifest does not say so"}},
		"a CronJob that its manifest suspends": {
			`{apiVersion: batch/v1, kind: CronJob, spec: {suspend: true}}`, Result{Ready, "suspended by its manifest"}},
		"a CronJob": {`{apiVersion: batch/v1, kind: CronJob, spec: {suspend: false}}`, Result{State: Ready}},
		"an object that is being deleted": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`,
			Result{Terminating, "Resource scheduled for deletion"}},
		"an object whose status cannot be understood": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, status: {conditions: nonsense}}`, Result{State: Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			text, err := yaml.YAMLToJSON([]byte(test.object))
			if err != nil {
				t.Fatal(err)
			}
			if err := object.UnmarshalJSON(text); err != nil {
				t.Fatal(err)
			}
			got := Of(object)
			if got.State == Unknown && strings.HasPrefix(got.Message, "its status is unreadable: ") {
				got.Message = "" // the rest is a library's
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

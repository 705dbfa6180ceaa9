package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestStripLeavesWhatTheAuthorWrote(t *testing.T) {
	for _, c := range []struct{ name, before, after string }{
		{"metadata of the server", `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: n
  uid: u
  resourceVersion: "1"
  generation: 2
  creationTimestamp: "2026-01-02T03:04:05Z"
  ownerReferences: [{kind: X}]
  finalizers: [f]
  managedFields: []
  labels: {a: b}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", mine: x}
data: {k: v}
`, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n, labels: {a: b}, annotations: {mine: x}}, data: {k: v}}"},
		{"addresses of a Service", `
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, type: NodePort, ports: [{port: 80, ` +
			`nodePort: 30000}]}
status: {loadBalancer: {}}
`, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort, ports: [{port: 80}]}}"},
		{"a headless Service stays headless", "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}",
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}"},
		{"a Namespace, which every API server fills alike", "{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: x, labels: " +
			"{kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}",
			"{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}}"},
		{"the volume of a claim", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: " +
			"{pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: v, storageClassName: s}}",
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: s}}"},
		{"the selector of a Job", `
apiVersion: batch/v1
kind: Job
metadata: {name: a, labels: {batch.kubernetes.io/controller-uid: u, mine: x}}
spec: {selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}, template: {metadata: {labels: {controller-uid: u, mine: x}}}}
`, "{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {mine: x}}, spec: {template: {metadata: {labels: {mine: x}}}}}"},
		{"unless its author chose it",
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}",
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}"},
		{"the revision of a Deployment", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: " +
			"{deployment.kubernetes.io/revision: '3'}}, spec: {replicas: 2}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2}}"},
		{"who leads", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {control-plane.alpha.kubernetes.io/leader: '{}', " +
			"mine: x}}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {mine: x}}}"},
		{"from what its name was made, which is its author's",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a-x7, generateName: a-, uid: u}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a-x7, generateName: a-}}"},
		{"the tokens of an account",
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: t}], imagePullSecrets: [{name: p}]}",
			"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: p}]}"},
	} {
		before := object(t, c.before)
		untouched := before.DeepCopy()
		if diff := cmp.Diff(object(t, c.after).Object, strip(before).Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(untouched.Object, before.Object); diff != "" {
			t.Errorf("%s: the original was changed:\n%s", c.name, diff)
		}
	}
}

func TestWhatIsNeverPlaced(t *testing.T) {
	for gvk, want := range map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "Pod"}:                                                                   true,
		{Version: "v1", Kind: "ConfigMap"}:                                                             false,
		{Group: "example.com", Version: "v1", Kind: "Node"}:                                            false,
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}:                                   true,
		{Group: "metrics.k8s.io", Version: "v1", Kind: "NodeMetrics"}:                                  true,
		{Group: "fleet.cattle.io", Version: "v1alpha1", Kind: "Cluster"}:                               true,
		{Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Kind: "Work"}:                     true,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                                             false,
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}:               false,
		{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"}:                              false,
		{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}:                    true,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:                              false,
		{Group: "test.kubernetes-fleet.io", Version: "v1alpha1", Kind: "TestResource"}:                 false,
		{Group: "notkubernetes-fleet.io", Version: "v1", Kind: "Thing"}:                                false,
		{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}:               true,
		{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"}:                  true,
		{Group: "custom.metrics.k8s.io", Version: "v1beta1", Kind: "MetricValueList"}:                  true,
		{Group: "events.k8s.io", Version: "v1", Kind: "Event"}:                                         true,
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:                                  false,
		{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}:                                 false,
		{Group: "storage.k8s.io", Version: "v1", Kind: "CSINode"}:                                      true,
		{Group: "networking.fleet.azure.com", Version: "v1alpha1", Kind: "ServiceExport"}:              false,
		{Group: "cluster.kubernetes-fleet.io", Version: "v1beta1", Kind: "InternalMemberCluster"}:      true,
		{Group: "management.cattle.io", Version: "v3", Kind: "Cluster"}:                                true,
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}: false,
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}:                           false,
		{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenReview"}:                           true,
	} {
		if got := neverPlaced(gvk) != ""; got != want {
			t.Errorf("%s: never placed %t, want %t", gvk, got, want)
		}
	}
	managed := map[string]string{"fleet.cattle.io/managed": "true"}
	for _, c := range []struct {
		namespace string
		labels    map[string]string
		workspace bool
		want      bool
	}{
		{"shop", nil, false, false}, {"default", nil, false, true}, {"kube-public", nil, false, true}, {"fleet-system", nil, false, true},
		{"fleet-member-a", nil, false, true},
		{"cattle-fleet-system", nil, false, true}, {"cattle-fleet-clusters-system", nil, false, true}, {"cluster-x-y", managed, false, true},
		{"clusters", nil, true, true}, {"kubernetes", nil, false, false},
	} {
		if got := reservedNamespace(c.namespace, c.labels, c.workspace) != ""; got != c.want {
			t.Errorf("namespace %s: reserved %t, want %t", c.namespace, got, c.want)
		}
	}
	for text, want := range map[string]bool{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}": true,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}}":             false,
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}":     true,
		"{apiVersion: v1, kind: Endpoints, metadata: {name: a, labels: {endpoints.kubernetes.io/managed-by: " +
			"endpoint-controller}}}": true,
		"{apiVersion: v1, kind: Endpoints, metadata: {name: a}}":                                                                false,
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque}":                                                     false,
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token}":                        true,
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, type: fleet.cattle.io/cluster-registration-values}":                true,
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, type: fleet.cattle.io/agent-credential}":                           true,
		"{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {fleet.cattle.io/managed: 'true'}}}":                        true,
		"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, ownerReferences: [{kind: Deployment, controller: true}]}}": true,
		"{apiVersion: v1, kind: Pod, metadata: {name: a, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, controller: " +
			"true}]}}": true,
		"{apiVersion: v1, kind: Secret, metadata: {name: a, ownerReferences: [{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, " +
			"controller: true}]}}": false,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [{apiVersion: example.com/v1, kind: " +
			"Widget}]}}": false,
		"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, ownerReferences: [{kind: Application}]}}": false,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, deletionTimestamp: '2026-01-02T03:04:05Z'}}":    true,
	} {
		if got := derived(object(t, text)); got != want {
			t.Errorf("%s: left out %t, want %t", text, got, want)
		}
	}
}

func TestWhatEveryAPIServerCreatesIsNotPlaced(t *testing.T) {
	for text, want := range map[string]bool{
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: cluster-admin, labels: " +
			"{kubernetes.io/bootstrapping: rbac-defaults}}}": true,
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: mine}}": false,
		"{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: exempt, annotations: " +
			"{apf.kubernetes.io/autoupdate-spec: 'true'}}}": true,
		"{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: mine}}":             false,
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: system-node-critical}}":     true,
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: mine}}":                     false,
		"{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: kubernetes}}":                 true,
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1beta1.metrics.k8s.io}}": false,
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1., labels: " +
			"{kube-aggregator.kubernetes.io/automanaged: onstart}}}": true,
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: fleet.cattle.io}}": true,
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: example.com}}":     false,
	} {
		if got := ofAPIServer(object(t, text)); got != want {
			t.Errorf("%s: refused %t, want %t", text, got, want)
		}
	}
}

func TestOthersFollowWhatTheyNeed(t *testing.T) {
	ordered := []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: z}}",
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: z, namespace: a}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: z, namespace: a}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: a}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: a}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: z}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: z}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: z}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: z, namespace: a}}",
		"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: b}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: a}}",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: a}}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: a}}",
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: a}}",
		"{apiVersion: zoo.example.com/v1, kind: Animal, metadata: {name: a, namespace: a}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: a}}",
	}
	for i := range ordered[1:] {
		if a, b := object(t, ordered[i]), object(t, ordered[i+1]); inOrder(a, b) >= 0 || inOrder(b, a) <= 0 {
			t.Errorf("%s does not come before %s", ordered[i], ordered[i+1])
		}
	}
}

func TestTheClaimsOfAStatefulSetAreKnownByTheirNames(t *testing.T) {
	set := object(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {volumeClaimTemplates: [{metadata: {name: data}}, "+
		"{metadata: {name: logs}}]}}")
	for name, want := range map[string]bool{
		"data-db-0": true, "logs-db-12": true, "data-db-": false, "data-db-x": false, "data-db-1-old": false, "data-dbx-0": false,
		"mine": false, "db-0": false,
	} {
		if got := claims(set, name); got != want {
			t.Errorf("%s: claimed by the StatefulSet %t, want %t", name, got, want)
		}
	}
}

func TestAClaimOfAStatefulSetIsKnownByWhoMadeIt(t *testing.T) {
	claim := func(entries string) *unstructured.Unstructured {
		return object(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0, managedFields: ["+entries+"]}}")
	}
	const made, bound = "operation: Update, fieldsV1: {f:spec: {f:accessModes: {}}}}",
		"operation: Update, fieldsV1: {f:spec: {f:volumeName: {}}}}"
	for _, c := range []struct {
		name, entries string
		want          bool
	}{
		{"a controller's", "{manager: kube-controller-manager, " + made, true},
		{"a controller's of K3s, that is bound", "{manager: k3s, " + made + ", {manager: k3s, " + bound, true},
		{"a user's", "{manager: kubectl, " + made, false},
		{"a user's that is bound", "{manager: kubectl, " + made + ", {manager: kube-controller-manager, " + bound, false},
	} {
		kept := trim(trim(claim(c.entries))) // a relist hands out what was cut before
		if got := (&resolver{Selector: &Selector{Watches: NewWatches(nil, nil)}, queries: map[Query]bool{}}).derivedFrom(kept); got != c.want {
			t.Errorf("%s: made by a controller %t, want %t", c.name, got, c.want)
		}
		if len(kept.GetManagedFields()) > 0 && kept.GetManagedFields()[0].FieldsV1 != nil {
			t.Errorf("%s: what was written is kept", c.name)
		}
	}
}

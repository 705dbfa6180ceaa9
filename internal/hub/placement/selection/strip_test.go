package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatTheAuthorChoseIsPlacedAndWhatTheHubAssignedIsNot(t *testing.T) {
	by := func(manager, fields string) string {
		return "managedFields: [{manager: " + manager + ", operation: Update, fieldsV1: {" + fields + "}}]"
	}
	service := func(managed, rest string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: a, " + managed + "}, spec: {clusterIP: 10.0.0.1, " +
			"clusterIPs: [10.0.0.1], healthCheckNodePort: 30180, ports: [{port: 80, protocol: TCP, nodePort: 30080}, " +
			"{port: 81, protocol: TCP, nodePort: 30081}]" + rest + "}}"
	}
	hook := func(managed, bundle string) string {
		return "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a, " + managed +
			"}, webhooks: [{name: h, clientConfig: {service: {name: s}" + bundle + "}}]}"
	}
	const ca = ", caBundle: QQ=="
	volume := func(managed, annotations, claim string) string {
		return "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a, " + annotations + managed +
			"}, spec: {accessModes: []" + claim + "}}"
	}
	const bound = ", claimRef: {namespace: shop, name: data, uid: x, resourceVersion: '1'}"
	for _, c := range []struct{ name, given, want string }{
		{
			"a Service of assigned ports",
			service(by("kubectl", `f:spec: {f:ports: {'k:{"port":80,"protocol":"TCP"}': {f:port: {}}}}`), ""),
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, protocol: TCP}, {port: 81, protocol: TCP}]}}",
		},
		{
			"a Service of chosen ports", service(by("kubectl", `f:spec: {f:clusterIP: {}, f:healthCheckNodePort: {}, f:ports: `+
				`{'k:{"port":80,"protocol":"TCP"}': {f:nodePort: {}}}}`), ""),
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1, healthCheckNodePort: 30180, ports: " +
				"[{port: 80, protocol: TCP, nodePort: 30080}, {port: 81, protocol: TCP}]}}",
		},
		{
			"a claim that was bound", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, " +
				by("kube-controller-manager", "f:spec: {f:volumeName: {}}") + "}, spec: {volumeName: pv}}",
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {}}",
		},
		{
			"a claim that names its volume", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, " +
				by("kubectl", "f:spec: {f:volumeName: {}}") + "}, spec: {volumeName: pv}}",
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: pv}}",
		},
		{
			"a volume that was bound", volume(by("kube-controller-manager", "f:spec: {f:claimRef: {f:name: {}}}"), "", bound),
			"{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {accessModes: []}}",
		},
		{
			"a volume that names its claim", volume(by("kubectl", "f:spec: {f:claimRef: {f:name: {}}}"), "", bound),
			"{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {accessModes: [], " +
				"claimRef: {namespace: shop, name: data}}}",
		},
		{
			"a volume of a provisioner", volume(by("rancher.io-local", "f:spec: {f:claimRef: {f:name: {}}}"),
				"annotations: {pv.kubernetes.io/provisioned-by: x}, ", bound),
			"{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {accessModes: []}}",
		},
		{
			"an injected certificate", hook(by("ca-injector", `f:webhooks: {'k:{"name":"h"}': {f:clientConfig: {f:caBundle: {}}}}`), ca),
			hook("", ""),
		},
		{
			"the author's certificate",
			hook(by("kubectl", `f:webhooks: {'k:{"name":"h"}': {f:clientConfig: {f:caBundle: {}, f:service: {f:name: {}}}}}`), ca),
			hook("", ca),
		},
		{
			"an aggregated role", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {}, " +
				"rules: [{}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {}}",
		},
	} {
		want := object(t, c.want)
		if diff := cmp.Diff(want, strip(object(t, c.given))); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if diff := cmp.Diff(want, strip(trim(trim(object(t, c.given))))); diff != "" {
			t.Errorf("%s, out of memory: %s", c.name, diff)
		}
	}
}

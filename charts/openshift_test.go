package charts_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// podSpecs are the specs of all Pods that objects are or make, by kind and name.
func podSpecs(t *testing.T, objects []unstructured.Unstructured) map[string]corev1.PodSpec {
	t.Helper()
	all := map[string]corev1.PodSpec{}
	for _, object := range objects {
		path := map[string][]string{"Deployment": {"spec", "template", "spec"}, "Pod": {"spec"}}[object.GetKind()]
		if path == nil {
			continue
		}
		fields, _, _ := unstructured.NestedMap(object.Object, path...)
		var spec corev1.PodSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
			t.Fatal(err)
		}
		all[object.GetKind()+" "+object.GetName()] = spec
	}
	return all
}

// restricted says why OpenShift's SecurityContextConstraints restricted-v2, which every Pod may
// use, would refuse a Pod. They take a user and a group of volumes only out of the namespace's own
// range, which is put where the Pod names none.
func restricted(spec corev1.PodSpec) (refused []string) {
	refuse := func(wrong bool, why string) {
		if wrong {
			refused = append(refused, why)
		}
	}
	pod := spec.SecurityContext
	if pod == nil || len(spec.Containers)+len(spec.InitContainers) != 1 {
		return []string{"there is no securityContext of the Pod, or other containers than one"}
	}
	refuse(spec.HostNetwork || spec.HostPID || spec.HostIPC, "it uses namespaces of the host")
	for _, volume := range spec.Volumes {
		refuse(volume.EmptyDir == nil, "volume "+volume.Name+" is of a type that this test does not judge")
	}
	refuse(pod.RunAsUser != nil || pod.RunAsGroup != nil || pod.FSGroup != nil || len(pod.SupplementalGroups) > 0 || pod.SELinuxOptions != nil,
		"it names a user, a group or a context of SELinux")
	refuse(pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot, "it may run as root")
	refuse(pod.SeccompProfile == nil || pod.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault,
		"its seccomp profile is not the runtime's")
	container := spec.Containers[0]
	refuse(slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 }), "it has a port of the host")
	own := container.SecurityContext
	if own == nil || own.Capabilities == nil {
		return append(refused, "the container has no securityContext with capabilities")
	}
	refuse(own.RunAsUser != nil || own.RunAsGroup != nil || own.SELinuxOptions != nil,
		"the container names a user, a group or a context of SELinux")
	refuse(own.Privileged != nil && *own.Privileged || own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation,
		"the container may get privileges")
	refuse(!slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(own.Capabilities.Add) > 0, "the container has capabilities")
	return refused
}

func TestPodsRunUnderTheConstraintsThatOpenShiftHasForEverybody(t *testing.T) {
	openshift := []string{"v1", "apps/v1", "security.openshift.io/v1", "security.openshift.io/v1/SecurityContextConstraints"}
	for name, command := range map[string]helm{
		"fleet": hub(""), "fleet-agent": agent(valuesOfToken(t), "apiServerURL=https://hub"), "member-agent": member(),
	} {
		specs := podSpecs(t, command.mustRender(t).objects)
		for pod, spec := range specs {
			for _, why := range restricted(spec) {
				t.Errorf("chart %s, %s: %s", name, pod, why)
			}
		}
		want := 2 // one Pod, and the Pod of the chart's test
		if name == "fleet" {
			want++ // the program that reads repositories
		}
		if len(specs) != want {
			t.Errorf("chart %s has %d Pods, want %d", name, len(specs), want)
		}
		command.serves = openshift
		if diff := cmp.Diff(specs, podSpecs(t, command.mustRender(t).objects)); diff != "" {
			t.Errorf("chart %s is another on OpenShift (-without +with):\n%s", name, diff)
		}
	}
}

// TestTheAgentThatTheHubInstallsRunsThereToo renders the chart for a cluster with only its
// kubeconfig, as the hub does. The chart cannot query the cluster then.
func TestTheAgentThatTheHubInstallsRunsThereToo(t *testing.T) {
	cluster := &fleet.Cluster{}
	cluster.Namespace, cluster.Name = "clusters", "a"
	values := agentchart.Of(cluster, "id", settings.Agent{Image: "muster-agent:v1", TLSMode: settings.TLSSystemStore}, "cattle-fleet-system")
	values.Bootstrap = &bootstrap.Bootstrap{APIServerURL: "https://hub", Token: "t", TokenName: "n", ClusterNamespace: "clusters"}
	rendered, err := agentchart.Render(values)
	if err != nil {
		t.Fatal(err)
	}
	var objects []unstructured.Unstructured
	for _, object := range rendered {
		objects = append(objects, *object)
	}
	specs := podSpecs(t, objects)
	for pod, spec := range specs {
		for _, why := range restricted(spec) {
			t.Errorf("%s: %s", pod, why)
		}
	}
	if len(specs) != 1 {
		t.Errorf("there are %d Pods", len(specs))
	}
}

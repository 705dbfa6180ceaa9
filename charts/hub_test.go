package charts_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/crds"
	"github.com/muster-fleet/muster/charts"
	"github.com/muster-fleet/muster/internal/fleet/history"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/naming"
)

func hub(values string, set ...string) helm {
	return helm{chart: "fleet", namespace: "cattle-fleet-system", release: "fleet", values: values, set: set}
}

func TestHubConfigHasTheKeysOfTheWireFormat(t *testing.T) {
	want := map[string]any{
		"apiServerURL": "https://hub:6443",
		"apiServerCA":  base64.StdEncoding.EncodeToString([]byte(ca)),
		"apiServerFallbacks": []any{
			map[string]any{"apiServerURL": "https://hub-2"}, map[string]any{"apiServerURL": "https://hub-3", "apiServerCA": "c"},
		},
		"apiServerFallbackAfter": "60s",
		"agentTLSMode":           "strict",
		"agentCheckinInterval":   "15m",
		"agentTokenLifetime":     "168h",
		"forceDeleteWaitTime":    "15m",
		"manageAgent":            true,
		"registrationTokenTTL":   map[string]any{"required": false},
		"audit":                  map[string]any{"maxAge": "2160h", "maxEntries": 1000.0},
		"removalBrake":           map[string]any{"share": 20.0},
		"healthCheck":            map[string]any{"failureThreshold": 1.0, "successThreshold": 1.0},
		"lostMembers":            map[string]any{"taintAfter": "0s", "removeAfter": "0s"},
		"inventory": map[string]any{"namespace": "fleet-inventory", "alsoInFleetSystem": false, "clusterSet": "default",
			"placementDecisions": false},
		"access": map[string]any{"workspaces": []any{}, "argocdNamespace": "", "argocdProject": "", "fluxNamespace": "",
			"inventoryNamespace": ""},
		"bundleNamespaceMappings":         "consent",
		"bundleNamespaceMappingsToLocal":  false,
		"importLoopback":                  false,
		"facts":                           map[string]any{"labels": []any{}},
		"clusterAPI":                      map[string]any{"annotations": []any{}, "classLabel": "", "labels": []any{}, "leaveFirst": "0s"},
		"notifications":                   []any{},
		"placement":                       map[string]any{"authorRights": "enforce"},
		"garbageCollectionInterval":       "15m",
		"ignoreClusterRegistrationLabels": false,
		"registration": map[string]any{"displacement": "approved",
			"requestLifetime": "1h", "newClusterLifetime": "24h", "maxWaitingPerToken": 100.0, "maxWaitingPerWorkspace": 1000.0,
			"maxQueuedPerToken": 10000.0, "maxNewClustersPerToken": 2000.0,
		},
		"agentImage":            "muster-agent:0.1.0",
		"agentImagePullPolicy":  "IfNotPresent",
		"systemDefaultRegistry": "",
		"imagePullSecrets":      []any{map[string]any{"name": "pull"}},
		"bootstrap": map[string]any{
			"namespace": "fleet-local", "agentNamespace": "", "localAgentDisabled": false, "clusterLabels": map[string]any{"a": "b"},
			"repo": "", "secret": "", "branch": "master", "paths": "", "agentTolerations": []any{},
		},
	}
	for form, value := range map[string]string{"PEM": ca, "base64 of PEM": base64.StdEncoding.EncodeToString([]byte(ca))} {
		t.Run(form, func(t *testing.T) {
			out := hub("", "apiServerURL=https://hub:6443", "apiServerCA="+value, "agentTLSMode=strict", "global.imagePullSecrets={pull}",
				"apiServerFallbacks[0].apiServerURL=https://hub-2", "apiServerFallbacks[1].apiServerURL=https://hub-3",
				"apiServerFallbacks[1].apiServerCA=c",
				"bootstrap.clusterLabels.a=b").mustRender(t)
			if diff := cmp.Diff(want, out.config(t, "fleet-controller")); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatPlacementsMaySelectIsReadOnlyAndUpToTheAdmin(t *testing.T) {
	readable := func(out release) map[string]bool {
		all := map[string]bool{}
		rules, _, err := unstructured.NestedSlice(out.object(t, "ClusterRole", "fleet-controller-placement").Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			fields := rule.(map[string]any)
			if diff := cmp.Diff([]any{"get", "list", "watch"}, fields["verbs"]); diff != "" {
				t.Errorf("verbs of %v (-want +got):\n%s", fields, diff)
			}
			for _, group := range fields["apiGroups"].([]any) {
				for _, resource := range fields["resources"].([]any) {
					all[fmt.Sprintf("%s.%s", resource, group)] = true
				}
			}
		}
		return all
	}
	usual := readable(hub("").mustRender(t))
	if !usual["deployments.apps"] || !usual["configmaps."] || usual["*.*"] || usual["widgets.example.com"] {
		t.Errorf("by default placements may select %v", usual)
	}
	if more := readable(
		hub("placement: {extraResources: [{apiGroups: [example.com], resources: [widgets]}]}").mustRender(t),
	); len(more) != len(usual)+1 || !more["widgets.example.com"] {
		t.Errorf("with widgets added placements may select %v", more)
	}
	if only := readable(hub("placement: {resources: [{apiGroups: [''], resources: [configmaps]}]}").mustRender(t)); len(only) != 1 {
		t.Errorf("with only ConfigMaps placements may select %v", only)
	}
	for _, object := range hub("", "placement.enabled=false").mustRender(t).objects {
		if object.GetName() == "fleet-controller-placement" {
			t.Errorf("%s is there although placement is off", object.GetKind())
		}
	}
}

func TestHubWithoutURLInstallsAndSaysWhatThatMeans(t *testing.T) {
	out := hub("").mustRender(t)
	if want := "apiServerURL is not set, so values.yaml does not contain the address of this hub"; !strings.Contains(out.notes, want) {
		t.Errorf("notes do not say %q:\n%s", want, out.notes)
	}
}

func TestMistakesOfAHubFailWithASentence(t *testing.T) {
	tests := map[string]struct {
		set  []string
		want string
	}{
		"URL without scheme":     {[]string{"apiServerURL=hub"}, `apiServerURL is "hub", which is no address of an API server`},
		"CA that is neither":     {[]string{"apiServerCA=abc"}, "apiServerCA is neither PEM"},
		"kubeconfigs by the hub": {[]string{"access.argocdNamespace=cattle-fleet-system"}, "access/argocdNamespace"},
		"kubeconfigs in kube-":   {[]string{"access.fluxNamespace=kube-system"}, "access/fluxNamespace"},
		"an unknown change": {
			[]string{"notifications[0].name=chat", "notifications[0].secretName=key", "notifications[0].url=https://gate",
				"notifications[0].reasons[0]=Lots"}, "notifications/0/reasons/0",
		},
		"a receiver without a host": {
			[]string{"notifications[0].name=chat", "notifications[0].secretName=key", "notifications[0].url=http:///muster"},
			"notifications/0/url",
		},
		"a receiver without a key": {
			[]string{"notifications[0].name=chat", "notifications[0].url=https://gate"}, "missing property 'secretName'",
		},
		"a further address alone": {
			[]string{"apiServerFallbacks[0].apiServerURL=https://hub-2"}, "so apiServerURL is required: it is the first address",
		},
		"a further address without TLS": {
			[]string{"apiServerURL=https://hub", "apiServerFallbacks[0].apiServerURL=http://hub-2"}, "apiServerFallbacks/0/apiServerURL",
		},
		"unknown TLS mode": {[]string{"agentTLSMode=none"}, `agentTLSMode is "none": set it to strict`},
		"unknown mappings": {[]string{"bundleNamespaceMappings=closed"}, `bundleNamespaceMappings is "closed": set it to consent`},
		"strict without a CA": {
			[]string{"agentTLSMode=strict", "apiServerURL=https://hub"}, "agentTLSMode is strict, so apiServerCA is required",
		},
		"duration":  {[]string{"agentCheckinInterval=often"}, "agentCheckinInterval"},
		"inventory": {[]string{"inventory.namespace=a.b"}, "inventory"},
		"rights":    {[]string{"placement.authorRights=all"}, "authorRights"},
		"election":  {[]string{"leaderElection.leaseDuration=15"}, "leaseDuration"},
		"replicas":  {[]string{"controller.replicas=many"}, "controller"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := hub("", test.set...).render(t); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestKubeconfigsForToolsAreNotWrittenBesideTheHub(t *testing.T) {
	for _, namespace := range []string{"muster-system", "muster-clusters-system"} {
		install := helm{chart: "fleet", namespace: "muster-system", release: "fleet", set: []string{"access.fluxNamespace=" + namespace}}
		want := "access.fluxNamespace is " + namespace + ", a namespace of the hub itself"
		if _, err := install.render(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestUpstreamValuesOfTheHubAreAccepted(t *testing.T) {
	out := hub(`
shards: [{id: a}]
gitops: {enabled: true, syncPeriod: 1h}
helmops: {enabled: true}
imagescan: {enabled: false}
migrations: {clusterRegistrationCleanup: true}
metrics: {enabled: true}
leaderElection: {leaseDuration: 30s, retryPeriod: 10s, renewDeadline: 25s}
controller: {reconciler: {workers: {bundle: "50"}}}
`).mustRender(t)
	want := "ignores them: controller.reconciler, gitops.syncPeriod, helmops, imagescan, metrics, migrations, shards"
	if !strings.Contains(out.notes, want) {
		t.Errorf("notes do not say %q:\n%s", want, out.notes)
	}
	args, _, _ := unstructured.NestedStringSlice(out.container(t, "fleet-controller"), "args")
	for _, arg := range []string{"--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=25s", "--leader-elect-retry-period=10s"} {
		if !slices.Contains(args, arg) {
			t.Errorf("%s is not among %s", arg, args)
		}
	}
}

func TestHubMayNotEscalate(t *testing.T) {
	role := hub("").mustRender(t).object(t, "ClusterRole", "fleet-controller")
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	for _, rule := range rules {
		rule := rule.(map[string]any)
		for _, verb := range rule["verbs"].([]any) {
			switch {
			case verb == "*" || verb == "escalate" || verb == "impersonate":
				t.Errorf("the hub has the verb %s: %v", verb, rule)
			case verb == "bind" && len(rule["resourceNames"].([]any)) == 0:
				t.Errorf("the hub may bind any role: %v", rule)
			}
		}
		if slices.Contains(rule["resources"].([]any), any("serviceaccounts/token")) &&
			!cmp.Equal(rule["resourceNames"], []any{naming.MemberServiceAccount, naming.MemberReconnectAccount}) {
			t.Errorf("the hub may issue tokens of any account in every namespace: %v", rule)
		}
	}
}

func TestNamespacedObjectsSayTheReleaseNamespace(t *testing.T) {
	for _, command := range []helm{hub(""), agent(valuesOfToken(t), "apiServerURL=https://hub")} {
		command.namespace = "elsewhere"
		if command.chart == "fleet-agent" {
			command.set = append(command.set, "internal.systemNamespace=elsewhere")
		}
		for _, object := range command.mustRender(t).objects {
			clusterScoped := strings.HasPrefix(object.GetKind(), "Cluster") ||
				slices.Contains([]string{"CustomResourceDefinition", "FlowSchema", "PriorityLevelConfiguration"}, object.GetKind())
			if got := object.GetNamespace(); got != "elsewhere" && !clusterScoped {
				t.Errorf("%s %s of chart %s is in namespace %q", object.GetKind(), object.GetName(), command.chart, got)
			}
		}
	}
}

// sharedCRD is the file of a CRD that other cluster managers use too.
const sharedCRD = "multicluster.x-k8s.io_clusterprofiles.yaml"

func TestCRDOfSomebodyElseIsNeitherTakenOverNorRemoved(t *testing.T) {
	for _, c := range []struct {
		name     string
		stands   map[string]string // its annotations
		rendered bool
	}{
		{"absent", nil, true},
		{"installed by hand", map[string]string{}, false},
		{"that of another release",
			map[string]string{"meta.helm.sh/release-name": "inventory", "meta.helm.sh/release-namespace": "cattle-fleet-system"}, false},
		{"that of a release of the name elsewhere",
			map[string]string{"meta.helm.sh/release-name": "fleet-crd", "meta.helm.sh/release-namespace": "x"}, false},
		{"the chart's own, to be upgraded",
			map[string]string{"meta.helm.sh/release-name": "fleet-crd", "meta.helm.sh/release-namespace": "cattle-fleet-system"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := helm{chart: "fleet-crd", namespace: "cattle-fleet-system", release: "fleet-crd"}
			if c.stands != nil {
				stands := &unstructured.Unstructured{}
				stands.SetAPIVersion("apiextensions.k8s.io/v1")
				stands.SetKind("CustomResourceDefinition")
				stands.SetName("clusterprofiles.multicluster.x-k8s.io")
				stands.SetAnnotations(c.stands)
				command.cluster = []runtime.Object{stands}
			}
			rendered := slices.ContainsFunc(command.mustRender(t).objects, func(o unstructured.Unstructured) bool {
				return o.GetName() == "clusterprofiles.multicluster.x-k8s.io"
			})
			if rendered != c.rendered {
				t.Errorf("rendered: %t, want %t", rendered, c.rendered)
			}
		})
	}
}

func TestCRDChartRendersTheAPIAndKeepsItOnUninstall(t *testing.T) {
	rendered := helm{chart: "fleet-crd", namespace: "cattle-fleet-system", release: "fleet-crd"}.mustRender(t)
	names, err := fs.Glob(crds.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	onMembers := 0
	for _, name := range names {
		copies := []string{"fleet-crd/templates/" + name}
		onMember := strings.Contains(name, "_appliedworks") // the one kind that members serve
		if onMember {
			copies = []string{"fleet-agent/templates/appliedworks.yaml", "member-agent/templates/appliedworks.yaml"}
			onMembers++
		}
		original, err := fs.ReadFile(crds.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range copies {
			inChart, err := fs.ReadFile(charts.FS, path)
			if name == sharedCRD || onMember { // between lines that say when
				inChart = bytes.TrimSuffix(inChart[bytes.Index(inChart, []byte("---\n")):], []byte("{{- end }}\n"))
			}
			if err != nil || string(inChart) != string(original) {
				t.Errorf("charts/%s is not api/crds/%s (%v); run make generate", path, name, err)
			}
		}
	}
	if onMembers != 1 || len(rendered.objects) != len(names)-onMembers {
		t.Errorf("the chart renders %d objects, the API has %d, %d of them on members", len(rendered.objects), len(names), onMembers)
	}
	for _, object := range rendered.objects {
		if object.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
			t.Errorf("uninstalling the chart would delete %s and all its objects", object.GetName())
		}
	}
}

func TestOnlySeveralReplicasAreProtectedFromDrains(t *testing.T) {
	const budget = "PodDisruptionBudget cattle-fleet-system/fleet-controller"
	if names := hub("").mustRender(t).names(); slices.Contains(names, budget) {
		t.Errorf("a single replica could never leave its node: %v", names)
	}
	got := hub("", "controller.replicas=2").mustRender(t).object(t, "PodDisruptionBudget", "fleet-controller").Object["spec"]
	want := map[string]any{
		"maxUnavailable": float64(1), "unhealthyPodEvictionPolicy": "AlwaysAllow",
		"selector": map[string]any{"matchLabels": map[string]any{"app": "fleet-controller"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("budget (-want +got):\n%s", diff)
	}
}

// running is a release of each chart that runs something.
func running(t *testing.T) map[string]release {
	t.Helper()
	return map[string]release{
		"fleet": hub("").mustRender(t), "fleet-agent": agent(valuesOfToken(t), "apiServerURL=https://hub").mustRender(t),
		"member-agent": member().mustRender(t),
	}
}

func TestOnlyPodsThatUseTheirTokenGetOne(t *testing.T) {
	for name, out := range running(t) {
		pods := 0
		for _, object := range out.objects {
			path := map[string][]string{
				"ServiceAccount": {"automountServiceAccountToken"}, "Deployment": {"spec", "template", "spec", "automountServiceAccountToken"},
				"Pod": {"spec", "automountServiceAccountToken"},
			}[object.GetKind()]
			if path == nil {
				continue
			}
			mounts, said, _ := unstructured.NestedBool(object.Object, path...)
			if uses := object.GetKind() != "ServiceAccount"; !said || mounts != uses {
				t.Errorf("chart %s: %s %s mounts its token: %t", name, object.GetKind(), object.GetName(), mounts)
			}
			pods++
		}
		if pods < 4 {
			t.Errorf("chart %s has %d accounts and Pods, fewer than with helm test", name, pods)
		}
	}
}

func TestEveryContainerHasARequestAndAMemoryLimit(t *testing.T) {
	for name, out := range running(t) {
		for _, object := range out.objects {
			path := map[string][]string{"Deployment": {"spec", "template", "spec", "containers"}, "Pod": {"spec", "containers"}}[object.GetKind()]
			containers, _, _ := unstructured.NestedSlice(object.Object, path...)
			if path == nil {
				continue
			}
			for _, container := range containers {
				for _, bound := range [][]string{
					{"resources", "requests", "cpu"}, {"resources", "requests", "memory"}, {"resources", "limits", "memory"},
				} {
					if text, _, _ := unstructured.NestedString(container.(map[string]any), bound...); text == "" {
						t.Errorf("chart %s: the container of %s %s has no %v", name, object.GetKind(), object.GetName(), bound)
					}
				}
				if text, _, _ := unstructured.NestedString(container.(map[string]any), "resources", "limits", "cpu"); text != "" {
					t.Errorf("chart %s: %s %s is throttled", name, object.GetKind(), object.GetName())
				}
			}
		}
	}
}

func TestOnlyTheTestsAreHooksOfHelmTest(t *testing.T) {
	want := map[string][]string{
		"fleet":        {"ServiceAccount", "Role", "RoleBinding", "Pod"},
		"fleet-agent":  {"ServiceAccount", "Role", "RoleBinding", "Pod"},
		"member-agent": {"ServiceAccount", "Role", "RoleBinding", "Pod"},
	}
	got := map[string][]string{}
	for name, out := range running(t) {
		for _, object := range out.objects {
			if object.GetAnnotations()["helm.sh/hook"] == "test" {
				got[name] = append(got[name], object.GetKind())
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheHubIsReachedAtMetricsAndProbesOnly(t *testing.T) {
	port := func(name string) any { return []any{map[string]any{"port": name, "protocol": "TCP"}} }
	from := []any{map[string]any{"podSelector": map[string]any{}}}
	for name, c := range map[string]struct {
		values  string
		ingress []any
	}{
		"metrics by everybody": {"", []any{map[string]any{"ports": port("metrics")}, map[string]any{"ports": port("probes")}}},
		"metrics by those that may": {"networkPolicy: {metricsFrom: [{podSelector: {}}]}", []any{
			map[string]any{"ports": port("metrics"), "from": from}, map[string]any{"ports": port("probes")},
		}},
		"or it is left to the admin": {"networkPolicy: {enabled: false}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			out := hub(c.values).mustRender(t)
			const policy = "NetworkPolicy cattle-fleet-system/fleet-controller"
			if c.ingress == nil {
				if slices.Contains(out.names(), policy) {
					t.Errorf("there is a %s", policy)
				}
				return
			}
			want := map[string]any{
				"podSelector": map[string]any{"matchLabels": map[string]any{"app": "fleet-controller"}}, "policyTypes": []any{"Ingress", "Egress"},
				"ingress": c.ingress, "egress": []any{map[string]any{}},
			}
			if diff := cmp.Diff(want, out.object(t, "NetworkPolicy", "fleet-controller").Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			ports := out.container(t, "fleet-controller")["ports"].([]any)
			if len(ports) != len(c.ingress) {
				t.Errorf("the hub listens at %v", ports)
			}
		})
	}
}

func TestTheAuthorOfAPlacementIsWrittenDownWhereTheClusterCanDoThat(t *testing.T) {
	of := func(out release) (kinds []string) {
		for _, object := range out.objects {
			if object.GetName() == "muster-placement-author" {
				kinds = append(kinds, strings.TrimSuffix(object.GetKind(), "Binding")+" "+object.GroupVersionKind().Version)
			}
		}
		slices.Sort(kinds)
		return slices.Compact(kinds)
	}
	const api, mutating, validating = "admissionregistration.k8s.io/", "/MutatingAdmissionPolicy", "v1/ValidatingAdmissionPolicy"
	for name, c := range map[string]struct {
		serves []string
		want   []string
	}{
		"Kubernetes 1.36": {
			[]string{validating, "v1" + mutating, "v1beta1" + mutating}, []string{"MutatingAdmissionPolicy v1", "ValidatingAdmissionPolicy v1"},
		},
		"an older one with that feature": {
			[]string{validating, "v1beta1" + mutating}, []string{"MutatingAdmissionPolicy v1beta1", "ValidatingAdmissionPolicy v1"},
		},
		"one without":                            {[]string{validating}, []string{"ValidatingAdmissionPolicy v1"}},
		"one that has no admission policies yet": {nil, nil},
	} {
		h := hub("")
		h.serves = []string{}
		for _, kind := range c.serves {
			h.serves = append(h.serves, api+kind)
		}
		if diff := cmp.Diff(c.want, of(h.mustRender(t))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFlowControlIsForServersThatHaveItAndCanBeSwitchedOff(t *testing.T) {
	kinds := func(set ...string) map[string]int {
		count := map[string]int{}
		for _, object := range hub("", set...).mustRender(t).objects {
			if strings.HasPrefix(object.GetAPIVersion(), "flowcontrol.apiserver.k8s.io/") {
				count[object.GetKind()]++
			}
		}
		return count
	}
	if diff := cmp.Diff(map[string]int{"FlowSchema": 4, "PriorityLevelConfiguration": 3}, kinds()); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
	if off := kinds("flowControl.enabled=false"); len(off) > 0 {
		t.Errorf("switched off: %v", off)
	}
}

// TestTheHubReadsTheReceiversThatTheChartWrites has each change that the schema of the chart lists.
func TestTheHubReadsTheReceiversThatTheChartWrites(t *testing.T) {
	values := []string{"notifications[0].name=chat", "notifications[0].secretName=key", "notifications[0].url=https://gate.example/muster",
		"notifications[0].workspaces[0]=clusters"}
	for i, reason := range history.Reasons {
		values = append(values, fmt.Sprintf("notifications[0].reasons[%d]=%s", i, reason))
	}
	configMap := hub("", values...).mustRender(t).object(t, "ConfigMap", "fleet-controller")
	text, _, _ := unstructured.NestedString(configMap.Object, "data", "config")
	read, err := settings.Parse(text)
	want := []settings.Sink{{Name: "chat", SecretName: "key", URL: "https://gate.example/muster", Reasons: history.Reasons,
		Workspaces: []string{"clusters"}}}
	if diff := cmp.Diff(want, read.Notifications); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestTheHubWritesPlacementDecisionsOnlyWithTheValue(t *testing.T) {
	for _, test := range []struct {
		set  []string
		want bool
	}{
		{nil, false}, {[]string{"inventory.placementDecisions=true"}, true},
		{[]string{"inventory.placementDecisions=true", "inventory.namespace="}, false},
	} {
		role := hub("", test.set...).mustRender(t).object(t, "ClusterRole", "fleet-controller")
		rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
		writes := slices.ContainsFunc(rules, func(rule any) bool {
			return cmp.Equal(rule.(map[string]any)["resources"], any([]any{"placementdecisions"}))
		})
		if writes != test.want {
			t.Errorf("%v: the hub has the right to write them: %t", test.set, writes)
		}
	}
}

func TestTheHubReadsClustersOfClusterAPIOnlyForARule(t *testing.T) {
	reads := func(set ...string) bool {
		role := hub("", set...).mustRender(t).object(t, "ClusterRole", "fleet-controller")
		rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
		return slices.ContainsFunc(rules, func(rule any) bool {
			return cmp.Equal(rule, any(map[string]any{"apiGroups": []any{"cluster.x-k8s.io"}, "resources": []any{"clusters"},
				"verbs": []any{"get", "list", "watch"}}))
		})
	}
	for _, set := range []string{"clusterAPI.labels={env}", "clusterAPI.annotations={note}", "clusterAPI.classLabel=class",
		"clusterAPI.leaveFirst=10m"} {
		if !reads(set) {
			t.Errorf("%s: the hub has no right to read them", set)
		}
	}
	if reads() {
		t.Error("without a rule, the hub has the right to read them")
	}
	for set, want := range map[string]bool{
		"clusterAPI.leaveFirst=10m": true, "clusterAPI.leaveFirst=0s": false, "clusterAPI.labels={env}": false,
	} {
		role := hub("", set).mustRender(t).object(t, "ClusterRole", "fleet-controller")
		rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
		writes := slices.ContainsFunc(rules, func(rule any) bool {
			return cmp.Equal(rule, any(map[string]any{"apiGroups": []any{"cluster.x-k8s.io"}, "resources": []any{"clusters"},
				"verbs": []any{"patch"}}))
		})
		if writes != want {
			t.Errorf("%s: the hub has the right to write them: %t", set, writes)
		}
	}
}

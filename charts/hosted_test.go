package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// onHost is the part of a chart on the host, in a release named after the member.
func onHost(chart, name string, set ...string) helm {
	h := helm{chart: chart, namespace: "agents", release: name, set: []string{"hosted.part=host", "hosted.memberKubeconfigSecret=" + name}}
	h.set = append(h.set, set...)
	if chart == "member-agent" {
		h.set = append(h.set, "config.hubURL=https://hub:6443", "config.memberClusterName=web")
	}
	return h
}

func installed(out release) (all []string) {
	for _, o := range out.objects {
		if o.GetAnnotations()["helm.sh/hook"] != "test" {
			all = append(all, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	return all
}

// TestTheHostOfAnAgentGivesItNoRight covers both charts: each object of the part host is listed.
func TestTheHostOfAnAgentGivesItNoRight(t *testing.T) {
	for chart, want := range map[string][]string{
		"fleet-agent":  {"Deployment agents/web", "NetworkPolicy agents/web", "ServiceAccount agents/web"},
		"member-agent": {"Deployment agents/web-member-agent", "ServiceAccount agents/web-member-agent-sa"},
	} {
		out := onHost(chart, "web").mustRender(t)
		if diff := cmp.Diff(want, installed(out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", chart, diff)
		}
		pod, _, _ := unstructured.NestedMap(out.objects[slices.IndexFunc(out.objects, isDeployment)].Object, "spec", "template", "spec")
		if pod["automountServiceAccountToken"] != false {
			t.Errorf("%s: the Pod has a token of the host", chart)
		}
	}
}

func isDeployment(o unstructured.Unstructured) bool { return o.GetKind() == "Deployment" }

// TestTwoAgentsOfOneHostShareNothing: neither an object nor the Secret with a kubeconfig.
func TestTwoAgentsOfOneHostShareNothing(t *testing.T) {
	for _, chart := range []string{"fleet-agent", "member-agent"} {
		first, second := onHost(chart, "web").mustRender(t), onHost(chart, "shop").mustRender(t)
		for _, name := range installed(first) {
			if slices.Contains(installed(second), name) {
				t.Errorf("%s: both have %s", chart, name)
			}
		}
		selectors := map[string]bool{}
		for release, out := range map[string]release{"web": first, "shop": second} {
			deployment := out.objects[slices.IndexFunc(out.objects, isDeployment)].Object
			volumes, _, _ := unstructured.NestedSlice(deployment, "spec", "template", "spec", "volumes")
			want := []any{map[string]any{"name": "member-kubeconfig", "secret": map[string]any{"secretName": release}}}
			if diff := cmp.Diff(want, volumes); diff != "" {
				t.Errorf("%s: volumes of %s (-want +got):\n%s", chart, release, diff)
			}
			labels, _, _ := unstructured.NestedStringMap(deployment, "spec", "selector", "matchLabels")
			selectors[labels["app.kubernetes.io/instance"]] = true
		}
		if len(selectors) != 2 {
			t.Errorf("%s: the Deployments select %v", chart, selectors)
		}
	}
}

// TestTheMemberOfAHostedAgentHasEverythingButTheDeployment compares with an agent on its cluster.
func TestTheMemberOfAHostedAgentHasEverythingButTheDeployment(t *testing.T) {
	own := agent(valuesOfToken(t), "apiServerURL=https://hub", "fleetAgent.priorityClass.value=1",
		"fleetAgent.podDisruptionBudget.minAvailable=1")
	for _, c := range []struct {
		own     helm
		without []string
		mark    string
	}{
		{own, []string{"Deployment", "NetworkPolicy", "PodDisruptionBudget", "PriorityClass"},
			"ConfigMap cattle-fleet-system/muster-hosted-agent"},
		{member(), []string{"Deployment"}, "ConfigMap fleet-system/muster-hosted-agent"},
	} {
		want := slices.DeleteFunc(installed(c.own.mustRender(t)), func(name string) bool {
			kind, _, _ := strings.Cut(name, " ")
			return slices.Contains(c.without, kind)
		})
		hosted := c.own
		hosted.set = append(slices.Clone(hosted.set), "hosted.part=member")
		got := installed(hosted.mustRender(t))
		want = append(want, c.mark)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.own.chart, diff)
		}
	}
}

func TestMistakesOfAHostedAgentFailWithASentence(t *testing.T) {
	with := func(h helm, set ...string) helm {
		h.set = append(slices.Clone(h.set), set...)
		return h
	}
	own := agent(valuesOfToken(t), "apiServerURL=https://hub")
	elsewhere := own
	elsewhere.release = "web"
	for name, c := range map[string]struct {
		command helm
		want    string
	}{
		"an unknown part":     {with(own, "hosted.part=hub"), "hosted"},
		"a Secret of no name": {onHost("fleet-agent", "web", "hosted.memberKubeconfigSecret=A_B"), "hosted"},
		"no Secret on the host": {onHost("fleet-agent", "web", "hosted.memberKubeconfigSecret="),
			"hosted.memberKubeconfigSecret is required to be set with hosted.part=host: a Secret in namespace agents"},
		"no Secret on the host, of a MemberCluster": {onHost("member-agent", "web", "hosted.memberKubeconfigSecret="),
			"hosted.memberKubeconfigSecret is required"},
		"the token on the host": {onHost("fleet-agent", "web", "token=x"), "token is for hosted.part=member only"},
		"the release of the host's own agent": {onHost("fleet-agent", "fleet-agent"),
			"must not be installed with release name fleet-agent, the name of the host's own agent"},
		"the release of the host's own agent of a MemberCluster": {onHost("member-agent", "member-agent"),
			"must not be installed with release name member-agent"},
		"a Secret on the member": {with(own, "hosted.memberKubeconfigSecret=web"), "is for hosted.part=host only"},
		"a Secret on the member, of a MemberCluster": {member("hosted.part=member", "hosted.memberKubeconfigSecret=web"),
			"is for hosted.part=host only"},
		"the member's part in another release": {with(elsewhere, "hosted.part=member"), "release name fleet-agent"},
	} {
		if _, err := c.command.render(t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}

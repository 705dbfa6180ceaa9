package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// TestTheAPIServerRefusesWhatCannotBeMeant goes through the rules of the schema, in both versions.
func TestTheAPIServerRefusesWhatCannotBeMeant(t *testing.T) {
	f := newFixture(t)
	const all = `resourceSelectors: [{group: "", version: v1, kind: Namespace, name: x}]`
	for _, c := range []struct{ name, before, spec, want string }{
		{"nothing selected", "", `resourceSelectors: []`, "should have at least 1 items"},
		{
			"name and labels", "", `resourceSelectors: [{group: "", version: v1, kind: Namespace, name: x, labelSelector: {matchLabels: {a: b}}}]`,
			"name and labelSelector exclude each other",
		},
		{
			"a scope of something else", "",
			`resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: x, selectionScope: NamespaceOnly}]`,
			"selectionScope is for the kind Namespace only",
		},
		{"names without fixed", "", all + "\npolicy: {placementType: PickAll, clusterNames: [a]}", "clusterNames is for PickFixed only"},
		{
			"fixed with affinity", "", all + "\npolicy: {placementType: PickFixed, clusterNames: [a], tolerations: [{key: a, operator: Exists}]}",
			"PickFixed takes clusterNames only",
		},
		{"N without a number", "", all + "\npolicy: {placementType: PickN}", "numberOfClusters is for PickN only, which needs it"},
		{"a number of all", "", all + "\npolicy: {placementType: PickAll, numberOfClusters: 3}", "numberOfClusters is for PickN only"},
		{
			"all spread", "", all + "\npolicy: {placementType: PickAll, topologySpreadConstraints: [{topologyKey: a}]}",
			"topologySpreadConstraints is for PickN only",
		},
		{"a number below zero", "", all + "\npolicy: {placementType: PickN, numberOfClusters: -1}", "greater than or equal to 0"},
		{
			"an unknown operator", "", all + "\npolicy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
				"{clusterSelectorTerms: [{propertySelector: {matchExpressions: [{name: a, operator: In, values: ['1']}]}}]}}}}", "Unsupported value",
		},
		{"an effect that evicts", "", all + "\npolicy: {tolerations: [{key: a, effect: NoExecute}]}", "Unsupported value"},
		{"a toleration of nothing", "", all + "\npolicy: {tolerations: [{value: a}]}", "operator must be Exists"},
		{
			"another type", all + "\npolicy: {placementType: PickN, numberOfClusters: 1}",
			all + "\npolicy: {placementType: PickFixed, clusterNames: [a]}", "placementType cannot be changed",
		},
		{"no policy any more", all + "\npolicy: {placementType: PickAll}", all, "policy cannot be removed once it is set"},
		{
			"a toleration less", all + "\npolicy: {tolerations: [{key: a, operator: Exists}]}",
			all + "\npolicy: {tolerations: [{key: b, operator: Exists}]}", "tolerations can only be added",
		},
		{"a part above all", "", all + "\nstrategy: {rollingUpdate: {maxUnavailable: 150%}}", "maxUnavailable"},
		{"a name too long", "", all, "metadata.name max length is 63"},
	} {
		crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{GenerateName: "bad-"}}
		if strings.Contains(c.want, "metadata.name") {
			crp.Name = strings.Repeat("x", 64)
		}
		read := func(text string) {
			crp.Spec = placement.PlacementSpec{}
			f.check(yaml.UnmarshalStrict([]byte(text), &crp.Spec))
		}
		var err error
		if c.before != "" {
			read(c.before)
			f.check(f.Create(context.Background(), crp))
			f.t.Cleanup(func() { f.dispose(crp) })
			f.eventually("the hub has added its finalizer", func() error {
				if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
					return err
				}
				read(c.spec)
				if err = f.Update(context.Background(), crp); apierrors.IsConflict(err) {
					return err
				}
				return nil
			})
		} else {
			read(c.spec)
			err = f.Create(context.Background(), crp)
		}
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it refused with %q", c.name, err, c.want)
		}
	}
}

func TestPickFixedOfNobodyIsAllowedAndTakesEverythingAway(t *testing.T) {
	f := newFixture(t)
	m := f.joined("nobody")
	crp := f.crp("resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + f.shop() + "}]\npolicy: {placementType: PickFixed}")
	f.untilSays(crp, "Scheduled", metav1.ConditionUnknown, "spec.policy names no member")
	f.untilOn(crp)
	name := func(names ...string) {
		f.change(crp, func() { crp.Spec.Policy.ClusterNames = names })
	}
	name(m.name)
	f.untilOn(crp, m)
	name([]string{}...)
	f.untilOn(crp)
	f.untilSays(crp, "Scheduled", metav1.ConditionUnknown, "spec.policy names no member")
}

func TestAPlacementThatCannotBeSaysWhy(t *testing.T) {
	f := newFixture(t)
	m := f.joined("input")
	shop := f.shop()
	here := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "kubeconfig"}}
	f.check(f.Create(context.Background(), here))
	f.token("t", "") // makes the namespace a workspace
	crp := f.crp("resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + shop +
		"}]\npolicy: {placementType: PickFixed, clusterNames: [" + m.name + "]}")
	f.untilOn(crp, m)
	placed := f.works(crp)[0].Generation
	for _, c := range []struct {
		name, change string
		kind         string
		want         string
	}{
		{
			"nothing of that name", "resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: none-such}]",
			"Scheduled", "select nothing",
		},
		{
			"a reserved namespace", "resourceSelectors: [{group: '', version: v1, kind: Namespace, name: kube-system}]", "Scheduled",
			"Namespace kube-system cannot be placed: the namespace is reserved",
		},
		{
			"the fleet's namespace", "resourceSelectors: [{group: '', version: v1, kind: Namespace, name: fleet-system}]", "Scheduled",
			"Namespace fleet-system cannot be placed: the namespace is reserved",
		},
		{
			"a member namespace", "resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + m.namespaceName() + "}]", "Scheduled",
			"cannot be placed",
		},
		{
			"a workspace", "resourceSelectors: [{group: '', version: v1, kind: Namespace, name: $TEST}]", "Scheduled",
			"the namespace is a workspace or the fleet's own",
		},
		{
			"a kind that there is not", "resourceSelectors: [{group: example.com, version: v1, kind: Widget}]", "Scheduled",
			"the hub cluster does not serve Widget.example.com in version v1",
		},
		{
			"a role of the API server",
			"resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: cluster-admin}]",
			"Scheduled", "ClusterRole cluster-admin cannot be placed: every cluster creates its own",
		},
		{
			"a definition of the fleet",
			"resourceSelectors: [{group: apiextensions.k8s.io, version: v1, kind: CustomResourceDefinition, name: clusters.fleet.cattle.io}]",
			"Scheduled", "CustomResourceDefinition clusters.fleet.cattle.io cannot be placed: every cluster creates its own",
		},
		{"a kind that is never placed", "resourceSelectors: [{group: '', version: v1, kind: Node}]", "Scheduled", "Node cannot be placed"},
		{
			"an object of the fleet", "resourceSelectors: [{group: cluster.kubernetes-fleet.io, version: v1, kind: MemberCluster}]", "Scheduled",
			"objects of the fleet itself",
		},
		{"a kind that the hub may not read",
			"resourceSelectors: [{group: admissionregistration.k8s.io, version: v1, kind: ValidatingAdmissionPolicy}]", "Scheduled",
			"the hub may not read validatingadmissionpolicies.admissionregistration.k8s.io: allow it in placement.resources of the chart fleet"},
		{
			"what is in a namespace", "resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: x}]", "Scheduled", "select its Namespace",
		},
		{"something not done", "resourceSelectors: [{group: '', version: v1, kind: Namespace, name: " + shop +
			"}]\nstrategy: {reportBackStrategy: {type: Mirror}}", "Supported",
			"spec.strategy.reportBackStrategy: no status is copied back"},
	} {
		f.eventually(c.name+" is asked for", func() error {
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
				return err
			}
			policy := crp.Spec.Policy
			crp.Spec = placement.PlacementSpec{}
			f.check(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(c.change, "$TEST", f.workspace)), &crp.Spec))
			crp.Spec.Policy = policy
			return f.Update(context.Background(), crp)
		})
		nothing := strings.Contains(c.want, "select nothing")
		f.untilSays(crp, c.kind, map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[nothing], c.want)
		if nothing {
			f.eventually("the member holds nothing", func() error {
				if works := f.works(crp); len(works) != 1 || len(works[0].Spec.Workload.Manifests) > 0 {
					return fmt.Errorf("it has %d Works, with %d manifests", len(works), len(works[0].Spec.Workload.Manifests))
				}
				return nil
			})
		} else if c.kind == "Scheduled" && f.works(crp)[0].Generation != placed {
			t.Errorf("%s: what was placed before was changed", c.name)
		}
		placed = f.works(crp)[0].Generation
	}
}

func TestAWorkOfSomebodyElseIsNotTakenOver(t *testing.T) {
	f := newFixture(t)
	m := f.joined("taken", "env=prod")
	foreign := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: "crp-" + f.workspace + "-work"}}
	f.check(f.Create(context.Background(), foreign))
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	f.untilSays(crp, "WorkSynchronized", metav1.ConditionFalse, "-work that is not of ClusterResourcePlacement "+crp.Name)
	f.check(f.Delete(context.Background(), foreign))
	f.untilOn(crp, m)
}

package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// greedyEnvelope holds what a tenant may have, and what the hub's API server would refuse to them.
const greedyEnvelope = `
binding: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: mine, namespace: $NS}, roleRef: {apiGroup: ` +
	`rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: User, name: mallory}]}
quota: {apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: $NS}, spec: {hard: {pods: "1"}}}
widget: {apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: $NS}}
fine: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine, namespace: $NS}}
`

// untilWithheld waits until a placement says that something is left out of an envelope.
func (f fixture) untilWithheld(crp *placement.ClusterResourcePlacement, reason, words string) {
	f.t.Helper()
	f.untilSays(crp, "ResourceSelected", metav1.ConditionFalse, words)
	if c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementResourceSelected"); c.Reason != reason {
		f.t.Errorf("ResourceSelected has the reason %s, want %s", c.Reason, reason)
	}
}

// podsOf is how many Pods a quota in the Work of a placement allows; "-" if there is none.
func (f fixture) podsOf(crp *placement.ClusterResourcePlacement, quota string) string {
	f.t.Helper()
	if o := manifests(f.t, f.works(crp)[0])["ResourceQuota "+quota]; o != nil {
		pods, _, _ := unstructured.NestedString(o.Object, "spec", "hard", "pods")
		return pods
	}
	return "-"
}

// TestATenantsEnvelopeHoldsOnlyWhatTheTenantMayWriteOnTheHub lets a tenant try to have rights, a
// quota and an object of a foreign kind on members.
func TestATenantsEnvelopeHoldsOnlyWhatTheTenantMayWriteOnTheHub(t *testing.T) {
	f := newFixture(t)
	shop, m := f.shop(), f.joined("wrapper", "env=prod")
	n := f.overrider(shop, rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"create", "update"},
	})
	e := n.envelope(shop, "greedy", greedyEnvelope)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	for _, lacks := range []string{
		"RoleBinding " + shop + "/mine is left out: ResourceEnvelope " + shop + "/greedy: " + n.name +
			", who last changed it, may not bind clusterroles.rbac.authorization.k8s.io cluster-admin in namespace " + shop,
		"may not create resourcequotas in namespace " + shop,
		"may not create *.example.com in namespace " + shop,
	} {
		f.untilWithheld(crp, "EnvelopeNotPermitted", lacks)
	}
	greedy := func(placed map[string]*unstructured.Unstructured) (count int) {
		for _, name := range []string{"RoleBinding mine", "ResourceQuota small", "Widget w"} {
			if placed[name] != nil {
				count++
			}
		}
		return count
	}
	placed := manifests(t, f.works(crp)[0])
	if greedy(placed) != 0 || placed["ConfigMap fine"] == nil || placed["ConfigMap settings"] == nil {
		t.Errorf("the member has %v", placed)
	}

	f.patch(e, `{"data":{"quota":{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"small","namespace":"`+shop+
		`"},"spec":{"hard":{"pods":"2"}}}}}`)
	f.eventually("all of it is placed, now that an admin has changed it", func() error {
		if got := manifests(t, f.works(crp)[0]); greedy(got) != 3 || f.podsOf(crp, "small") != "2" {
			return fmt.Errorf("the member has %v", got)
		}
		return nil
	})
	n.patch(e, `{"data":{"quota":{"spec":{"hard":{"pods":"1000"}}}}}`)
	f.untilWithheld(crp, "EnvelopeNotPermitted", "placed objects stay as they are")
	if got := manifests(t, f.works(crp)[0]); greedy(got) != 3 || f.podsOf(crp, "small") != "2" {
		t.Errorf("after the tenant's change the member has %v", got)
	}
}

// TestAnEnvelopeWhoseAuthorLosesTheRightTakesNothingAway takes the right to create ConfigMaps away
// from the author, and gives it back.
func TestAnEnvelopeWhoseAuthorLosesTheRightTakesNothingAway(t *testing.T) {
	f := newAlone(t, "")
	shop, m := f.shop(), f.joined("unwraps", "env=prod")
	n := f.overrider(shop)
	n.envelope(shop, "own", "fine: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine, namespace: $NS}}")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	m.apply(crp.Name+"-work", "")
	before := f.works(crp)[0]
	if manifests(t, before)["ConfigMap fine"] == nil {
		t.Fatal("the ConfigMap is not placed")
	}
	all := n.may.Rules
	n.may.Rules = all[:1]
	f.check(f.Update(context.Background(), n.may))
	f.restartHub() // an answer is good for a minute
	f.untilWithheld(crp, "EnvelopeNotPermitted",
		"ConfigMap "+shop+"/fine is left out: ResourceEnvelope "+shop+"/own: "+n.name+", who last changed it, may not create configmaps")
	f.untilWithheld(crp, "EnvelopeNotPermitted", "placed objects stay as they are")
	if works := f.works(crp); len(works) != 1 || works[0].Generation != before.Generation {
		t.Errorf("the Works are changed: %+v", works)
	}
	n.may.Rules = all
	f.check(f.Update(context.Background(), n.may))
	f.restartHub()
	f.eventually("nothing is left out any more", func() error {
		if err := f.get(crp, "", crp.Name); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementResourceSelected"); c != nil {
			return fmt.Errorf("it says %s", c.Message)
		}
		return nil
	})
}

// TestAnEnvelopeWithoutAnAuthorIsNotPlaced has an envelope that is older than the policy which
// records authors.
func TestAnEnvelopeWithoutAnAuthorIsNotPlaced(t *testing.T) {
	f := newAlone(t, "")
	shop, m := f.shop(), f.joined("unsigned", "env=prod")
	f.withoutMutatingPolicy()
	crp := f.crp("resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: " + shop + "}]")
	f.patch(crp, `{"metadata":{"annotations":{"muster/author":"`+admin+`","muster/author-groups":"system:masters\nsystem:authenticated"}}}`)
	f.untilOn(crp, m)
	e := f.envelope(shop, "old", "fine: {apiVersion: v1, kind: ConfigMap, metadata: {name: fine, namespace: $NS}}")
	f.untilWithheld(crp, "AuthorUnknown", "kubectl annotate -n "+shop+" resourceenvelope old muster/author=NAME")
	if got := manifests(t, f.works(crp)[0]); got["ConfigMap fine"] != nil || got["ConfigMap settings"] == nil {
		t.Errorf("the member has %v", got)
	}
	f.patch(e, `{"metadata":{"annotations":{"muster/author":"`+admin+`","muster/author-groups":"system:masters\nsystem:authenticated"}}}`)
	f.eventually("it is placed", func() error {
		if got := manifests(t, f.works(crp)[0]); got["ConfigMap fine"] == nil {
			return fmt.Errorf("the member has %v", got)
		}
		return nil
	})
	before := f.works(crp)[0]
	f.patch(e, `{"metadata":{"annotations":null},"data":{"fine":{"data":{"a":"2"}}}}`)
	f.untilWithheld(crp, "AuthorUnknown", "placed objects stay as they are")
	if works := f.works(crp); len(works) != 1 || works[0].Generation != before.Generation {
		t.Errorf("the Works are changed: %+v", works)
	}
}

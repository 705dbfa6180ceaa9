package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

// askFor sets the confirming value of a Bundle's held removal, or marks the Bundle as
// processed.
func askFor(b *fleet.Bundle, value string) {
	c := fleet.Condition{Type: fleet.ConditionProcessed, Status: corev1.ConditionTrue, Reason: "Processed"}
	if value != "" {
		c = fleet.Condition{Type: fleet.ConditionProcessed, Status: corev1.ConditionFalse, Reason: "RemovalHeld",
			Message: "6 of 6 Clusters would lose it: c0; kubectl annotate app muster/confirm-removal=" + value}
	}
	b.Status.Conditions = []fleet.Condition{c}
}

func heldBundle(value string) *fleet.Bundle {
	b := &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web", UID: "u", Annotations: map[string]string{"mine": "stays"}},
	}
	askFor(b, value)
	return b
}

func TestOnlyWhatWasShownIsConfirmed(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const shown, other = "0cebe578", "335f9122"
	update := func(ctx context.Context, c client.Client, change func(*fleet.Bundle)) error {
		b := &fleet.Bundle{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(heldBundle("")), b); err != nil {
			return err
		}
		change(b)
		return c.Update(ctx, b)
	}
	for name, row := range map[string]struct {
		asks   string
		before func(context.Context, client.Client) error // the patch
		after  func(*fleet.Bundle)
		fails  string
		says   string
	}{
		"the hub removes it": {
			asks: shown, after: func(b *fleet.Bundle) { askFor(b, "") },
			says: "Bundle team-a/web waits for a confirmation: 6 of 6 Clusters would lose it: c0; ",
		},
		"nothing waits": {asks: "", says: "Bundle team-a/web does not wait for a confirmation.\n"},
		"the hub waits for something else by now": {asks: shown, after: func(b *fleet.Bundle) { askFor(b, other) },
			fails: "Bundle team-a/web is not confirmed after 1s"},
		"it changes between the look and the patch": {asks: shown, before: func(ctx context.Context, c client.Client) error {
			return update(ctx, c, func(b *fleet.Bundle) { askFor(b, other) })
		}, fails: "Bundle team-a/web has changed, and the change is not confirmed: run the command again"},
		"the user may not patch it": {asks: shown, before: func(context.Context, client.Client) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "bundles"}, "web", nil)
		}, fails: "confirming the held change of Bundle team-a/web: bundles \"web\" is forbidden"},
	} {
		patched := false
		hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(heldBundle(row.asks)).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				if row.before != nil {
					if err := row.before(ctx, c); err != nil {
						return err
					}
				}
				err := c.Patch(ctx, o, patch, options...)
				if err == nil {
					patched = true
					err = update(ctx, c, row.after)
				}
				return err
			},
		}).Build()
		var out bytes.Buffer
		change := &changer{
			IOStreams: genericiooptions.IOStreams{Out: &out}, access: newAccess(), progress: newProgress(&out), timeout: time.Second,
		}
		found := &fleet.Bundle{}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(heldBundle("")), found); err != nil {
			t.Fatal(err)
		}
		err := change.confirm(t.Context(), hub, found, true)
		if (err == nil) != (row.fails == "") || err != nil && !strings.Contains(err.Error(), row.fails) ||
			!strings.Contains(out.String(), row.says) {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			t.Fatal(err)
		}
		want := ""
		if patched {
			want = shown
		}
		if got := found.Annotations[fleet.AnnotationConfirmRemoval]; got != want || found.Annotations["mine"] != "stays" {
			t.Errorf("%s: its annotations are %v", name, found.Annotations)
		}
	}
}

func TestAStaleValueConfirmsNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	another := heldBundle("0cebe578")
	another.UID = "another"
	for name, is := range map[string]*fleet.Bundle{
		"another value": heldBundle("335f9122"), "none": heldBundle(""), "another Bundle of the name": another,
	} {
		hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(is).Build()
		change := &changer{access: newAccess()}
		err := change.confirmValue(t.Context(), hub, heldBundle("0cebe578"), "0cebe578")
		if err == nil || !strings.Contains(err.Error(), "Bundle team-a/web has changed, and the change is not confirmed: run the command "+
			"again to see") {
			t.Errorf("%s: %v", name, err)
		}
		after := &fleet.Bundle{}
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(is), after); err != nil ||
			after.Annotations[fleet.AnnotationConfirmRemoval] != "" {
			t.Errorf("%s: %v, %v", name, after.Annotations, err)
		}
	}
}

// TestWhoMayNotPatchABundleConfirmsNothing uses a tenant with read access to the Bundle only.
func TestWhoMayNotPatchABundleConfirmsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	ctx, cluster := context.Background(), fleetOn(t, "cli-sick")
	c := cluster.Client(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	held, other := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "held"}}, &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "other"},
	}
	for _, b := range []*fleet.Bundle{held, other} {
		check(c.Create(ctx, b))
		t.Cleanup(func() { check(c.Delete(ctx, b)) })
	}
	askFor(held, "0cebe578")
	check(c.Status().Update(ctx, held))
	check(client.IgnoreAlreadyExists(c.Create(ctx,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sees-bundles"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"bundles"}, Verbs: []string{"get", "list"}}}})))
	tenant, admin := of(t, cluster, cluster.Account(t, "sees-bundles", "sees-bundles")),
		of(t, cluster, cluster.Account(t, "confirms", "cluster-admin"))
	testkube.Eventually(t, "the tenant sees Bundles", func() error { _, _, err := tenant.run("get", "bundles"); return err })
	tenant.refused("confirm held --yes", "confirming the held change of Bundle team-a/held", "forbidden")
	admin.refused("confirm bundles team-a/held",
		"Bundle team-a/held waits for a confirmation, and the input is not a terminal: use --yes to confirm the change above")
	admin.refused("confirm clusters team-a/web", "muster confirm does not support clusters: use one of bundles, placements")
	admin.says("confirm bundles team-a/other", "Bundle team-a/other does not wait for a confirmation.\n")
	check(c.Get(ctx, client.ObjectKeyFromObject(held), held))
	if len(held.Annotations) > 0 {
		t.Fatalf("it is confirmed: %v", held.Annotations)
	}
	if out, _, err := admin.run("__complete", "confirm", "bundles", ""); err != nil || !strings.HasPrefix(out, "team-a/held\n:") {
		t.Errorf("completed are %v\n%s", err, out)
	}
	admin.says("confirm team-a/held --yes --timeout 0", "Bundle team-a/held waits for a confirmation: 6 of 6 Clusters would lose it: c0; ")
	check(c.Get(ctx, client.ObjectKeyFromObject(held), held))
	if held.Annotations[fleet.AnnotationConfirmRemoval] != "0cebe578" {
		t.Errorf("it is not confirmed: %v", held.Annotations)
	}
}

// refusesToDelete installs a policy against the deletion of BundleDeployments with these label
// values.
func (r rig) refusesToDelete(label string, values ...string) *admissionv1.ValidatingAdmissionPolicy {
	r.t.Helper()
	ctx := r.t.Context()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "keeps-deployments"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule: admissionv1.Rule{
						APIGroups: []string{"fleet.cattle.io"}, APIVersions: []string{"*"}, Resources: []string{"bundledeployments"},
					},
				}}}},
			Validations: []admissionv1.Validation{{
				Message: "it stays", Expression: fmt.Sprintf("!(oldObject.metadata.labels[%q] in ['%s'])", label, strings.Join(values, "', '")),
			}},
		}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	for _, o := range []client.Object{policy, binding} {
		r.check(r.Create(ctx, o))
		r.t.Cleanup(func() { r.check(client.IgnoreNotFound(r.Delete(context.Background(), o))) })
	}
	var kept fleet.BundleDeploymentList
	r.check(r.List(ctx, &kept, client.MatchingLabels{label: values[0]}))
	testkube.Eventually(r.t, "the API server refuses", func() error {
		if err := r.Delete(ctx, &kept.Items[0], client.DryRunAll); err == nil {
			return errors.New("it would delete it")
		}
		return nil
	})
	return policy
}

// TestTheHubRemovesWhatIsConfirmed empties a ClusterGroup of six Clusters. Two removals fail at
// first.
func TestTheHubRemovesWhatIsConfirmed(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	admin := of(t, r.Cluster, r.Account(t, "cli-admin", "cluster-admin"))
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "confirming", Name: name} }
	group := &fleet.ClusterGroup{
		ObjectMeta: meta("prod"), Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}},
	}
	web := &fleet.Bundle{ObjectMeta: meta("web"), Spec: fleet.BundleSpec{
		Resources: []fleet.BundleResource{{Name: "cm.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n"}},
		Targets:   []fleet.BundleTarget{{ClusterGroup: "prod"}},
	}}
	objects := []client.Object{group, web}
	for i := range 6 {
		c := &fleet.Cluster{ObjectMeta: meta(fmt.Sprint("c", i)), Spec: fleet.ClusterSpec{ClientID: fmt.Sprint("confirming-", i)}}
		c.Labels = group.Spec.Selector.MatchLabels
		objects = append(objects, c)
	}
	r.check(client.IgnoreAlreadyExists(r.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "confirming"}})))
	for _, o := range objects {
		r.check(r.Create(ctx, o))
		t.Cleanup(func() { r.check(client.IgnoreNotFound(r.Delete(ctx, o))) })
	}
	on := func() int {
		var all fleet.BundleDeploymentList
		r.check(r.List(ctx, &all, client.MatchingLabels{fleet.LabelBundleNamespace: "confirming", fleet.LabelBundleName: "web"}))
		return len(all.Items)
	}
	until := func(what string, is func() bool) {
		t.Helper()
		testkube.Eventually(t, what, func() error {
			if err := r.Get(ctx, client.ObjectKeyFromObject(web), web); err != nil {
				return err
			}
			if !is() {
				return fmt.Errorf("it is on %d Clusters and says %v", on(), web.Status.Conditions)
			}
			return nil
		})
	}
	until("the Bundle is on all", func() bool { return on() == 6 && web.Status.Summary.DesiredReady == 6 })
	r.check(retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the hub counts its Clusters
		r.check(r.Get(ctx, client.ObjectKeyFromObject(group), group))
		group.Spec.Selector.MatchLabels = map[string]string{"env": "production"}
		return r.Update(ctx, group)
	}))
	until("the removal is held back", func() bool { return heldValue(web) != "" })
	if on() != 6 {
		t.Fatalf("the Bundle is on %d Clusters before the removal is confirmed", on())
	}
	refuses := r.refusesToDelete(fleet.LabelCluster, "c1", "c4")
	admin.says("explain bundles confirming/web", "RemovalHeld", "muster confirm bundles confirming/web")
	admin.says("confirm confirming/web --yes",
		"Bundle confirming/web waits for a confirmation: 6 of the 6 Clusters with the Bundle would lose it", ": c0, c1, c2, c3, c4, c5; ")
	if on() != 2 {
		t.Errorf("the Bundle is on %d Clusters, want the two of which nobody may delete it", on())
	}
	r.check(r.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: refuses.Name}}))
	until("the rest is removed without another confirmation", func() bool { return on() == 0 && heldValue(web) == "" })
	admin.says("confirm confirming/web --yes", "Bundle confirming/web does not wait for a confirmation.\n")
}

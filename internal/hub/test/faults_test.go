package hub_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// faultsFor is how long TestNothingGoesWhateverFails disturbs a hub; `make soak`
// takes twenty minutes.
var faultsFor = flag.Duration("faults", 15*time.Second, "how long a hub is disturbed that must not take anything from members")

// fault is a failure of a hub or a mistake of a user, mended after a while.
type fault struct {
	name        string
	begin, mend func()
}

// disturbed is a hub that has delivered in both ways, and what went wrong since.
type disturbed struct {
	fixture
	mu  sync.Mutex
	log []string
	// lost are what was taken away.
	lost []string
}

func (d *disturbed) note(list *[]string, format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*list = append(*list, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// guard notes each BundleDeployment that goes, and each object that a Work loses.
func (d *disturbed) guard(ctx context.Context, must []string) {
	for _, list := range []client.ObjectList{&fleet.BundleDeploymentList{}, &placement.WorkList{}} {
		d.each(ctx, d.fixture, list, "", func(o client.Object, gone bool) {
			if !strings.Contains(o.GetName(), d.workspace) {
				return
			}
			if gone {
				d.note(&d.lost, "%T %s/%s", o, o.GetNamespace(), o.GetName())
			}
			work, isWork := o.(*placement.Work)
			if !isWork {
				return
			}
			var has []string
			for _, m := range work.Spec.Workload.Manifests {
				var of unstructured.Unstructured
				if err := json.Unmarshal(m.Raw, &of.Object); err == nil {
					has = append(has, of.GetKind()+" "+of.GetName())
				}
			}
			for _, name := range must {
				if !slices.Contains(has, name) {
					d.note(&d.lost, "%s of Work %s/%s", name, work.Namespace, work.Name)
				}
			}
		})
	}
}

// guardMember notes each object that goes on a member.
func (d *disturbed) guardMember(ctx context.Context, on fixture, namespaces ...string) {
	for _, namespace := range namespaces {
		for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.ServiceList{}, &corev1.SecretList{}} {
			d.each(ctx, on, list, namespace, func(o client.Object, gone bool) {
				if gone && o.GetLabels()["owner"] != "helm" { // the history of a release is short
					d.note(&d.lost, "%T %s/%s on the member", o, o.GetNamespace(), o.GetName())
				}
			})
		}
	}
}

// each calls a function with each object that is there or changes, until the context ends.
func (d *disturbed) each(ctx context.Context, on fixture, list client.ObjectList, namespace string, do func(o client.Object, gone bool)) {
	objects, err := client.NewWithWatch(on.cluster.Config, client.Options{Scheme: on.Scheme(), Mapper: on.RESTMapper()})
	d.check(err)
	events, err := objects.Watch(ctx, list, client.InNamespace(namespace))
	d.check(err)
	go func() {
		for event := range events.ResultChan() {
			if o, isObject := event.Object.(client.Object); isObject {
				do(o, event.Type == watch.Deleted || o.GetDeletionTimestamp() != nil)
			}
		}
		if ctx.Err() == nil {
			d.note(&d.lost, "sight of %T", list)
		}
	}()
}

// faults are those that the test chooses from.
func (d *disturbed) faults(author *rbacv1.ClusterRoleBinding, group *fleet.ClusterGroup, bundle *fleet.Bundle) []fault {
	ctx := context.Background()
	var rules []rbacv1.PolicyRule
	settings := d.configured()
	recreate := func(o client.Object) (begin, mend func()) {
		return func() { d.check(client.IgnoreNotFound(d.Delete(ctx, o.DeepCopyObject().(client.Object)))) }, func() {
			o.SetResourceVersion("")
			o.SetUID("")
			d.check(client.IgnoreAlreadyExists(d.Create(ctx, o.DeepCopyObject().(client.Object))))
		}
	}
	bindingAway, bindingBack := recreate(author)
	settingsAway, settingsBack := recreate(settings)
	api := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.broken.example.com"}, "spec": map[string]any{
			"group": "broken.example.com", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "nobody"}}}}
	apiAway, apiBroken := recreate(api)
	selector := group.Spec.Selector
	return []fault{
		{"the hub may not read ConfigMaps and Services", func() {
			rules = d.placeable(nil)
			d.placeable(slices.DeleteFunc(slices.Clone(rules), func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.Resources, "configmaps") || slices.Contains(r.Resources, "services")
			}))
		}, func() { d.placeable(rules) }},
		{"the author has no rights", bindingAway, bindingBack},
		{"the settings are gone", settingsAway, settingsBack},
		{"an API does not answer", apiBroken, apiAway},
		{"a group is invalid", func() {
			d.change(group, func() {
				group.Spec.Selector = &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "in", Values: []string{"prod"}}},
				}
			})
		}, func() { d.change(group, func() { group.Spec.Selector = selector }) }},
		{"the Bundle is invalid", func() { d.change(bundle, func() { bundle.Spec.Resources[0].Content = "a: [" }) }, func() {
			d.change(bundle, func() { bundle.Spec.Resources[0].Content = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: cm}\n" })
		}},
		{"the Bundle is paused", func() { d.change(bundle, func() { bundle.Spec.Paused = true }) }, func() {
			d.change(bundle, func() { bundle.Spec.Paused = false })
		}},
		{"the hub is killed", func() { d.hub.Kill() }, func() { d.hub.Start() }},
		{"the hub is killed and back at once", d.restartHub, func() {}},
	}
}

// TestNothingGoesWhateverFails has one to three random faults at a time, of what the hub asks and
// of what people mistype, and deletes nothing: no BundleDeployment may go, no Work may lose an
// object, and the member, whose agent and deployer are real, may lose none.
func TestNothingGoesWhateverFails(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	tenant, _ := f.userWith("default", "author-"+f.workspace)
	author := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "author-" + f.workspace}, RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin",
	},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "author-" + f.workspace}}}
	f.check(f.Create(ctx, author.DeepCopy()))
	t.Cleanup(func() { _ = f.Delete(ctx, author) })

	shop, e := f.shop(), f.elsewhere("faults-"+f.workspace)
	record := e.record()
	f.change(record, func() { metav1.SetMetaDataLabel(&record.ObjectMeta, "env", "prod") })
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp-" + f.workspace}}
	crp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: shop}}
	crp.Spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: []string{f.workspace + "/" + e.name}}
	f.eventually("the author places", func() error { return tenant.Create(ctx, crp.DeepCopy()) })
	t.Cleanup(func() { f.dispose(crp) })
	f.eventually("the member has what is placed", func() error { return e.on.get(&corev1.Secret{}, shop, "password") })
	group, target := f.prodGroup(), e.on.namespace("target-")
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "app-" + f.workspace}}
	bundle.Spec.Resources = []fleet.BundleResource{{Name: "cm.yaml", Content: "kind: ConfigMap\napiVersion: v1\nmetadata: {name: cm}\n"}}
	bundle.Spec.Targets, bundle.Spec.DefaultNamespace = []fleet.BundleTarget{{ClusterGroup: "prod"}}, target
	f.check(f.Create(ctx, bundle))
	f.eventually("the member has the release", func() error { return e.on.get(&corev1.ConfigMap{}, target, "cm") })

	d := &disturbed{fixture: f}
	guarded, stop := context.WithCancel(ctx)
	t.Cleanup(stop)
	d.guard(guarded, []string{"ConfigMap settings", "Service web", "Secret password"})
	d.guardMember(guarded, e.on, shop, target)
	faults := append(d.faults(author, group, bundle), fault{"the agent is stopped", e.agent.stop, e.agent.start})
	for end := time.Now().Add(*faultsFor); time.Now().Before(end); {
		random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		together := faults[:1+random.IntN(3)]
		if slices.ContainsFunc(together[1:], func(other fault) bool { return strings.Contains(other.name, "killed") }) {
			together = together[:1] // a hub that is dead is not killed again
		}
		for _, one := range together {
			d.note(&d.log, "%s", one.name)
			one.begin()
		}
		f.touch(shop, "in between")
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		for _, one := range together {
			one.mend()
			d.note(&d.log, "mended: %s", one.name)
		}
	}
	f.restartHub() // otherwise the hub checks rights again after a minute
	f.touch(shop, "in the end")
	f.eventually("all goes on in the end", func() error {
		value, _, err := unstructured.NestedString(manifests(t, f.works(crp)[0])["ConfigMap settings"].Object, "data", "a")
		if err != nil || !strings.HasPrefix(value, "in the end") {
			return fmt.Errorf("the member has %s (%w)", value, err)
		}
		return e.on.get(&corev1.ConfigMap{}, target, "cm")
	})
	stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.lost) > 0 {
		t.Errorf("with seed %d members lost\n%s\nafter\n%s", seed, strings.Join(d.lost, "\n"), strings.Join(d.log, "\n"))
	}
	t.Logf("%d faults", len(d.log)/2)
}

// touch changes the ConfigMap settings, which is an event of what places it.
func (f fixture) touch(namespace, value string) {
	f.t.Helper()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}}
	f.change(settings, func() { settings.Data = map[string]string{"a": value + time.Now().Format(" 15:04:05.000")} })
}

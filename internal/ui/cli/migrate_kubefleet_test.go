package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestAHubAndItsMembersMigrateFromKubeFleetAndBack(t *testing.T) {
	t.Parallel()
	hub, edge := withPods(t, "cli-kubefleet", theirImages...), withPods(t, "cli-member", theirImages...)
	admin := contexts(t, hub, edge)
	h, d, ctx := their{t, hub, hub.Client(t)}, their{t, edge, edge.Client(t)}, t.Context()
	admin.refused("migrate --from kubefleet", "there is no Deployment fleet-system/hub-agent on ")

	// What KubeFleet's hub leaves.
	hub.InstallCRDs(t)
	h.namespaces(naming.MemberSystemNamespace)
	h.install(map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: hub-agent\nversion: 0.3.1\n",
		"templates/all.yaml": deploymentOf("hub-agent", "fleet-system", "app: hub-agent", "kubefleet/hub-agent:v0.3.1"),
	}, naming.MemberSystemNamespace, nil)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: "edge-access"}}
	h.check(h.Create(ctx, account))
	token, err := kube.RequestToken(ctx, h.SubResource("token"), account, 24*time.Hour)
	h.check(err)
	record := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}}
	h.check(h.Create(ctx, record))
	guards := func(name, service string) *admissionv1.ValidatingWebhookConfiguration {
		o := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: name + ".example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionv1.SideEffectClassNone),
			TimeoutSeconds: new(int32(1)), FailurePolicy: new(admissionv1.Fail),
			ClientConfig: admissionv1.WebhookClientConfig{
				Service: &admissionv1.ServiceReference{Namespace: naming.MemberSystemNamespace, Name: service, Path: new("/validate")},
			},
			Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"*"}, Rule: admissionv1.Rule{
				APIGroups: []string{"cluster.kubernetes-fleet.io"}, APIVersions: []string{"*"}, Resources: []string{service + "s"}}}},
		}}}
		o.Webhooks[0].Rules[0].Resources = map[bool][]string{true: {"memberclusters"}, false: {"nobodys"}}[service == "fleetwebhook"]
		h.check(h.Create(ctx, o))
		return o
	}
	theirs, others := guards("fleet-validating-webhook-configuration", "fleetwebhook"), guards("fleet-others", "other")
	h.replicas(kubeFleetHub, 1)
	override, envelope, eves := h.withAuthors()

	admin.runs("migrate --from kubefleet --dry-run", "2 placements, overrides and envelopes have no author, as KubeFleet stores none. You, ",
		"would become their author", "KubeFleet's hub agent fleet-system/hub-agent is scaled to 1, with 1 MemberClusters",
		"ValidatingWebhookConfiguration "+theirs.Name+" calls this hub agent", "would install chart fleet ")
	h.check(h.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "installs"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "create"}},
		{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"escalate", "bind"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"patch"}}}}))
	h.staysWithoutAuthor(hub, "installs", override)
	of(t, hub, hub.Account(t, "installs", "installs")).refused("migrate --from kubefleet",
		"you may not delete validatingwebhookconfigurations.admissionregistration.k8s.io on the hub, as needed to stop KubeFleet's hub")
	h.replicas(kubeFleetHub, 1)
	h.install(map[string]string{"Chart.yaml": "apiVersion: v2\nname: fleet\nversion: 0.16.1\n",
		"templates/all.yaml": deploymentOf(hubDeployment, naming.SystemNamespace, "app: fleet-controller", "kubefleet/hub-agent:v0.16.1")},
		naming.SystemNamespace, nil)
	admin.refused("migrate --from kubefleet", "release fleet in namespace cattle-fleet-system is of another chart of that name")
	h.replicas(kubeFleetHub, 1)
	admin.runs("migrate --from kubefleet --back --dry-run", "Deployment fleet-system/hub-agent would be scaled to 1.")
	admin.runs("migrate --from kubefleet --back", "Deployment cattle-fleet-system/fleet-controller is of another chart, and is left alone",
		"KubeFleet's hub agent runs")
	h.replicas(musterHub, 1)
	h.uninstall("fleet", naming.SystemNamespace)
	admin.runs("migrate --from kubefleet", "Deployment fleet-system/hub-agent is stopped",
		"ValidatingWebhookConfiguration "+theirs.Name+" is deleted", "The hub is running.",
		"are now the author of 2 placements, overrides and envelopes", "The members stay joined")
	h.haveAuthors(override, envelope, eves)
	admin.runs("migrate --from kubefleet", "is scaled to 0", "The hub is running.")
	h.replicas(kubeFleetHub, 0)
	if err := h.Get(ctx, client.ObjectKeyFromObject(theirs), theirs); !apierrors.IsNotFound(err) {
		t.Errorf("the webhook that refuses everything: %v", err)
	}
	h.check(h.Get(ctx, client.ObjectKeyFromObject(others), others))

	agent, err := h.as(token)
	h.check(err)
	beat := func(ctx context.Context) error {
		report := &clusterv1beta1.InternalMemberCluster{}
		if err := agent.Get(ctx, types.NamespacedName{Namespace: naming.MemberClusterNamespace("edge"), Name: "edge"}, report); err != nil {
			return err
		}
		now := metav1.Now() // the others know no other field
		report.Status = clusterv1beta1.InternalMemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent,
			LastReceivedHeartbeat: now, Conditions: []metav1.Condition{
				{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "InternalMemberClusterJoined", LastTransitionTime: now},
				{
					Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: "InternalMemberClusterHealthy", LastTransitionTime: now,
				}}}}}
		return agent.Status().Update(ctx, report)
	}
	edge.InstallCRDs(t)
	d.namespaces(naming.MemberSystemNamespace)
	d.install(kubeFleetChart, naming.MemberSystemNamespace, map[string]any{
		"config": map[string]any{"hubURL": hub.Config.Host, "hubCA": string(hub.Config.CAData), "memberClusterName": "edge"},
		"image":  map[string]any{"repository": "kubefleet/member-agent", "tag": "v0.3.1"},
	})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: memberToken.Namespace, Name: memberToken.Name},
		StringData: map[string]string{"token": "not.a.token"},
	}
	d.check(d.Create(ctx, secret))
	admin.refused("migrate --from kubefleet cli-member",
		"the agent on cluster cli-member has no credential that this hub accepts for MemberCluster edge: its hub is at "+hub.Config.Host)
	secret.StringData = map[string]string{"token": token}
	d.check(d.Update(ctx, secret))
	d.plays(memberAgent, "kubefleet/member-agent", beat)
	testkube.Eventually(t, "it is joined", func() error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil ||
			meta.IsStatusConditionTrue(record.Status.Conditions, clusterv1beta1.ConditionJoined) {
			return err
		}
		return fmt.Errorf("not so: %+v", record.Status.Conditions)
	})

	admin.runs("migrate --from kubefleet cli-member", "MemberCluster edge has release fleet-system/member-agent, revision 1, of another "+
		"chart of that name, 0.3.1, which becomes Muster's 0.1.0", "\nedge MemberCluster ")
	definition := kube.Metadata(definitions)
	d.check(d.Get(ctx, client.ObjectKey{Name: "appliedworks.placement.kubernetes-fleet.io"}, definition))
	if definition.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("Helm may delete the definition of AppliedWorks: %v", definition.Annotations)
	}
	admin.refused("migrate --from kubefleet --back", "KubeFleet's hub does not hear Muster's agent, which 1 members have (edge)")
	admin.refused("migrate --from kubefleet --back cli-member --set delivery=false",
		"--back puts a release back as it was: leave out --set and --values")
	admin.runs("migrate --from kubefleet --back cli-member", "which becomes again what it was with revision 1", "\nedge MemberCluster ",
		"to be rid of it: kubectl --context cli-member -n fleet-system delete secret/fleet-agent-key")
	d.hasTheirAccount(memberAgent)
	admin.runs("migrate --from kubefleet --back --dry-run",
		"Deployment cattle-fleet-system/fleet-controller would be scaled to 0, and fleet-system/hub-agent to 1.")
	admin.runs("migrate --from kubefleet --back", "Deployment cattle-fleet-system/fleet-controller is stopped", "KubeFleet's hub agent runs")
	h.replicas(musterHub, 0)
	h.replicas(kubeFleetHub, 1)
	admin.runs("migrate --from kubefleet", "The hub is running.")
	h.replicas(musterHub, 1)
}

// withAuthors creates an override and an envelope without an author, as on KubeFleet's hub, and
// an override with one.
func (d their) withAuthors() (override, envelope, eves *unstructured.Unstructured) {
	d.t.Helper()
	of := func(text string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		d.check(json.Unmarshal([]byte(text), &o.Object))
		d.check(d.Create(d.t.Context(), o))
		return o
	}
	const overrides = `{"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ClusterResourceOverride", "metadata": {"name": %q, ` +
		`"annotations": {%s}}, "spec": {
		"clusterResourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}],
		"policy": {"overrideRules": [{"jsonPatchOverrides": [{"op": "add", "path": "/metadata/labels/a", "value": "b"}]}]}}}`
	override, eves = of(fmt.Sprintf(overrides, "none", "")), of(fmt.Sprintf(overrides, "eves", `"muster/author": "eve"`))
	envelope = of(`{"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "ResourceEnvelope", "metadata": {"namespace": ` +
		`"default", "name": "none"},
		"data": {"a.yaml": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}}}`)
	return override, envelope, eves
}

// staysWithoutAuthor runs the command as a user without the right to change an override.
func (d their) staysWithoutAuthor(hub testkube.Cluster, role string, override *unstructured.Unstructured) {
	d.t.Helper()
	u, h := of(d.t, hub, hub.Account(d.t, "reads", role)), newAccess()
	h.KubeConfig, h.CacheDir = &u.kubeconfig, &u.cacheDir
	var said bytes.Buffer
	m := &migrator{access: h, authors: true, progress: newProgress(&said)}
	c, err := h.checked()
	d.check(err)
	testkube.Eventually(d.t, "it says so", func() error {
		err := m.authorsOf(d.t.Context(), c)
		if text := strings.Join(strings.Fields(said.String()), " "); err != nil ||
			!strings.Contains(text, "you may not annotate them, such as ClusterResourceOverride none: what they place stays as it is") {
			return fmt.Errorf("it says %s (%v)", text, err)
		}
		return nil
	})
	d.check(d.Get(d.t.Context(), client.ObjectKeyFromObject(override), override))
	if annotations := override.GetAnnotations(); len(annotations) > 0 {
		d.t.Errorf("it has %v", annotations)
	}
}

// haveAuthors checks that the admin, with all groups, is the new author, and that the
// generation is unchanged.
func (d their) haveAuthors(override, envelope, eves *unstructured.Unstructured) {
	d.t.Helper()
	for _, o := range []*unstructured.Unstructured{override, envelope, eves} {
		before := o.GetGeneration()
		d.check(d.Get(d.t.Context(), client.ObjectKeyFromObject(o), o))
		by, groups := o.GetAnnotations()["muster/author"], strings.Split(o.GetAnnotations()["muster/author-groups"], "\n")
		if mine := slices.Contains(groups, "system:authenticated") && slices.Contains(groups, "system:masters"); (by == "eve") != (o == eves) ||
			by == "" || mine == (o == eves) || o.GetGeneration() != before {
			d.t.Errorf("%s %s has the author %q with %q, and generation %d, which was %d",
				o.GetKind(), o.GetName(), by, groups, o.GetGeneration(), before)
		}
	}
}

// replicas checks how many a Deployment is to have.
func (d their) replicas(name types.NamespacedName, want int32) {
	d.t.Helper()
	deployment := &appsv1.Deployment{}
	d.check(d.Get(d.t.Context(), name, deployment))
	if *deployment.Spec.Replicas != want {
		d.t.Errorf("%s is scaled to %d instead of %d", name, *deployment.Spec.Replicas, want)
	}
}

// scale changes the number of replicas of a Deployment.
func (d their) scale(name types.NamespacedName, to int32) {
	d.t.Helper()
	deployment := &appsv1.Deployment{}
	d.check(d.Get(d.t.Context(), name, deployment))
	deployment.Spec.Replicas = &to
	d.check(d.Update(d.t.Context(), deployment))
}

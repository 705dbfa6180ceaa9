package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// replicasBefore annotates a stopped Deployment with its replicas for the way back.
const replicasBefore = "muster/replicas-before"

// localCluster is the name of the hub's Cluster for itself.
const localCluster = "local"

var (
	// kubeFleetHub is the Deployment of KubeFleet's chart hub-agent.
	kubeFleetHub = types.NamespacedName{Namespace: naming.MemberSystemNamespace, Name: "hub-agent"}
	// musterHub is the Deployment of the chart fleet.
	musterHub = types.NamespacedName{Namespace: naming.SystemNamespace, Name: hubDeployment}
)

// migrateHub replaces a KubeFleet hub by Muster's, or rolls back. The two never run together:
// both would write the same Works.
func (m *migrator) migrateHub(ctx context.Context, hub *checked) error {
	theirs := &appsv1.Deployment{}
	if err := hub.Get(ctx, kubeFleetHub, theirs); apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no Deployment %s on %s, the hub agent of KubeFleet: muster init installs a hub where there is none",
			kubeFleetHub, hub.server)
	} else if err != nil {
		return err
	}
	if m.back {
		return m.hubBack(ctx, hub, theirs)
	}
	webhooks, err := hub.kubeFleetWebhooks(ctx)
	if err != nil {
		return err
	}
	members := 0
	if err := view.Each(ctx, hub, &clusterv1beta1.MemberClusterList{}, func(client.Object) { members++ }); err != nil && !kube.NotServed(err) {
		return fmt.Errorf("counting the MemberClusters: %w", err)
	}
	m.progress.step("KubeFleet's hub agent %s is scaled to %d, with %d MemberClusters",
		kubeFleetHub, ptr.Deref(theirs.Spec.Replicas, 1), members)
	for _, webhook := range webhooks {
		m.progress.step("%s calls this hub agent", hub.title(webhook))
	}
	install := &initializer{
		IOStreams: m.IOStreams, access: m.access, chartValues: m.chartValues, timeout: m.timeout, dryRun: m.dryRun, takesOver: true,
	}
	if m.dryRun {
		m.progress.line("It would be scaled to 0, and these webhooks deleted.")
		return errors.Join(m.progress.err, m.authorsOf(ctx, hub), install.run(ctx))
	}
	if err := require(ctx, []check{hub.may("stop KubeFleet's hub", rightsToStop(kubeFleetHub, webhooks...)...)}); err != nil {
		return err
	}
	if err := install.mayInstall(ctx, hub); err != nil {
		return err
	}
	if err := m.stop(ctx, hub, theirs); err != nil {
		return err
	}
	for _, webhook := range webhooks {
		if err := kube.DeleteByUID(ctx, hub, webhook); err != nil {
			return fmt.Errorf("deleting %s, which refuses every change without KubeFleet's hub agent: %w", hub.title(webhook), err)
		}
		m.progress.step("%s is deleted", hub.title(webhook))
	}
	if err := install.run(ctx); err != nil {
		return fmt.Errorf("%w; to run KubeFleet's hub again, use --back", err)
	}
	if err := m.authorsOf(ctx, hub); err != nil {
		return err
	}
	m.progress.line("The members stay joined; muster explain names the remaining steps, and muster migrate --from kubefleet MEMBER-CONTEXT " +
		"changes their agents over.")
	return m.progress.err
}

// rightsToStop lists the permissions to stop a Deployment and to delete webhooks.
func rightsToStop(deployment types.NamespacedName, webhooks ...client.Object) []right {
	rights := []right{{"patch", "apps", "deployments", deployment.Namespace}, {"list", "", "pods", deployment.Namespace}}
	for _, webhook := range webhooks {
		resource := "validatingwebhookconfigurations"
		if _, mutates := webhook.(*admissionv1.MutatingWebhookConfiguration); mutates {
			resource = "mutatingwebhookconfigurations"
		}
		rights = append(rights, right{"delete", admissionv1.GroupName, resource, ""})
	}
	return rights
}

// hubBack starts KubeFleet's hub agent again. All members must have KubeFleet's agent by then:
// KubeFleet's hub ignores Muster's agent.
func (m *migrator) hubBack(ctx context.Context, hub *checked, theirs *appsv1.Deployment) error {
	var native []string
	err := view.Each(ctx, hub, &clusterv1beta1.InternalMemberClusterList{}, func(o client.Object) {
		report := o.(*clusterv1beta1.InternalMemberCluster)
		if strings.HasPrefix(report.Namespace, naming.MemberClusterNamespace("")) && report.Status.AgentVersion != "" {
			native = append(native, report.Name)
		}
	})
	if err != nil {
		return fmt.Errorf("listing the members with Muster's agent: %w", err)
	}
	if len(native) > 0 {
		slices.Sort(native)
		return fmt.Errorf("KubeFleet's hub does not hear Muster's agent, which %d members have (%s): change these back first, by muster migrate "+
			"--from kubefleet --back MEMBER-CONTEXT", len(native), some(native))
	}
	ours, err := m.oursToStop(ctx, hub)
	if err != nil {
		return err
	}
	if m.dryRun {
		if ours != nil {
			m.progress.line("Deployment %s would be scaled to 0, and %s to %s.", musterHub, kubeFleetHub, replicasOf(theirs))
		} else {
			m.progress.line("Deployment %s would be scaled to %s.", kubeFleetHub, replicasOf(theirs))
		}
		return m.progress.err
	}
	rights := rightsToStop(kubeFleetHub)
	if ours != nil {
		rights = append(rights, rightsToStop(musterHub)...)
	}
	if err := require(ctx, []check{hub.may("have KubeFleet's hub run again", rights...)}); err != nil {
		return err
	}
	if ours != nil {
		if err := m.stop(ctx, hub, ours); err != nil {
			return err
		}
	}
	if ptr.Deref(theirs.Spec.Replicas, 1) == 0 {
		if err := scale(ctx, hub, theirs, replicasOf(theirs)); err != nil {
			return err
		}
	}
	if err := hub.awaitDeployment(ctx, &m.progress, kubeFleetHub.Namespace, kubeFleetHub.Name, "KubeFleet's hub agent"); err != nil {
		return err
	}
	m.progress.line("Its webhooks come back with it, or with helm upgrade of its chart.")
	if ours != nil {
		m.progress.line("The charts of Muster's hub stay installed, with no replica.")
	}
	return m.progress.err
}

// oursToStop returns the Deployment of Muster's hub, or nil. It leaves a Rancher Fleet hub
// alone, with the same names of Deployment and release.
func (m *migrator) oursToStop(ctx context.Context, hub *checked) (*appsv1.Deployment, error) {
	ours := &appsv1.Deployment{}
	if err := hub.Get(ctx, musterHub, ours); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if ptr.Deref(ours.Spec.Replicas, 1) == 0 { // stopped already
		return ours, nil
	}
	helm, err := m.helm(chartRelease{"fleet", musterHub.Namespace})
	if err != nil {
		return nil, err
	}
	chart, err := helm.load()
	if err != nil {
		return nil, err
	}
	revisions, err := helm.history()
	switch {
	case err != nil:
		return nil, err
	case len(revisions) == 0:
		return nil, fmt.Errorf("whose Deployment %s is cannot be seen, as it is of no release: scale it to 0 if it is Muster's hub, which must "+
			"not run beside KubeFleet's", musterHub)
	case !isOurs(basis(revisions), chart):
		m.progress.step("Deployment %s is of another chart, and is left alone", musterHub)
		return nil, m.progress.err
	}
	return ours, hub.nobodyIsLeft(ctx)
}

// nobodyIsLeft refuses to stop a hub with Clusters, except its own. KubeFleet's hub does not
// support Clusters.
func (c *checked) nobodyIsLeft(ctx context.Context) error {
	var clusters []string
	err := view.Each(ctx, c, &fleet.ClusterList{}, func(o client.Object) {
		if cluster := o.(*fleet.Cluster); cluster.Name != localCluster && !cluster.Status.Agent.LastSeen.IsZero() {
			clusters = append(clusters, view.NameOf(o))
		}
	})
	if err != nil && !kube.NotServed(err) {
		return fmt.Errorf("listing the Clusters without a hub afterwards: %w", err)
	}
	if len(clusters) == 0 {
		return nil
	}
	slices.Sort(clusters)
	return fmt.Errorf("KubeFleet's hub does not support Clusters, and %d have joined this hub (%s): first move them to another hub "+
		"with muster move, or remove them with muster leave", len(clusters), some(clusters))
}

// stop scales a Deployment to 0 and waits until its Pods are gone.
func (m *migrator) stop(ctx context.Context, hub *checked, d *appsv1.Deployment) error {
	if replicas := ptr.Deref(d.Spec.Replicas, 1); replicas > 0 {
		if err := kube.Annotate(ctx, hub, d, map[string]any{replicasBefore: strconv.Itoa(int(replicas))}); err != nil {
			return fmt.Errorf("saving the replicas of %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	if err := scale(ctx, hub, d, "0"); err != nil {
		return err
	}
	name := client.ObjectKeyFromObject(d)
	unseen, err := await(ctx, &m.progress, func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		err := hub.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels))
		left := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
			return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		})
		return len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the Pods of Deployment %s to end, which is scaled to 0: %w"+canBeRepeated, name, cmp.Or(unseen, err))
	}
	m.progress.step("Deployment %s is stopped", name)
	return m.progress.err
}

// replicasOf returns the replicas of a Deployment before the stop.
func replicasOf(d *appsv1.Deployment) string {
	if before, err := strconv.ParseUint(d.Annotations[replicasBefore], 10, 16); err == nil && before > 0 {
		return strconv.FormatUint(before, 10)
	}
	return "1"
}

func scale(ctx context.Context, hub client.Client, d *appsv1.Deployment, to string) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"replicas":%s}}`, d.UID, to)
	if err := hub.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("scaling Deployment %s/%s to %s: %w", d.Namespace, d.Name, to, err)
	}
	return nil
}

// kubeFleetWebhooks lists the webhook configurations with services of KubeFleet's hub only.
func (c *checked) kubeFleetWebhooks(ctx context.Context) (found []client.Object, err error) {
	validating, mutating := &admissionv1.ValidatingWebhookConfigurationList{}, &admissionv1.MutatingWebhookConfigurationList{}
	for _, list := range []client.ObjectList{validating, mutating} {
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("finding the webhooks of KubeFleet: %w", err)
		}
	}
	add := func(o client.Object, webhooks int, leads func(i int) admissionv1.WebhookClientConfig) {
		for i := range webhooks {
			if !leadsToKubeFleet(leads(i)) {
				return
			}
		}
		if webhooks > 0 {
			found = append(found, o)
		}
	}
	for i := range validating.Items {
		webhooks := validating.Items[i].Webhooks
		add(&validating.Items[i], len(webhooks), func(i int) admissionv1.WebhookClientConfig { return webhooks[i].ClientConfig })
	}
	for i := range mutating.Items {
		webhooks := mutating.Items[i].Webhooks
		add(&mutating.Items[i], len(webhooks), func(i int) admissionv1.WebhookClientConfig { return webhooks[i].ClientConfig })
	}
	return found, nil
}

// leadsToKubeFleet reports whether KubeFleet's hub agent serves a webhook, by the service or
// its default name.
func leadsToKubeFleet(to admissionv1.WebhookClientConfig) bool {
	const service = "fleetwebhook" // the default of the chart's webhookServiceName
	if to.Service != nil {
		return to.Service.Namespace == kubeFleetHub.Namespace && to.Service.Name == service
	}
	return to.URL != nil && strings.HasPrefix(*to.URL, "https://"+service+"."+kubeFleetHub.Namespace+".")
}

// some returns the first names of a list.
func some(names []string) string {
	const shown = 5
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helm "helm.sh/helm/v4/pkg/release/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// definitions is the kind of CRDs.
var definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// migratedAgent is the agent of a member, of either kind.
type migratedAgent struct {
	cluster   *checked
	helm      *helmOn
	revisions []*helm.Release
	// imported: there is no release, and revisions holds the revision made of the agent.
	imported   bool
	deployment types.NamespacedName
	// record is the Cluster or MemberCluster on the hub, with the credential of the agent.
	record client.Object
	// native reports whether the hub recognizes the agent as Muster's.
	native func(ctx context.Context) (bool, error)
	// prepare runs on the cluster before the installation of another chart.
	prepare func(ctx context.Context) error
	// stays is the reason against the return of the earlier agent, or "".
	stays string
	// account is the agent's user on the hub.
	account string
}

// rancherAgent finds the agent of a Cluster.
func (m *migrator) rancherAgent(ctx context.Context, cluster, hub *checked) (*migratedAgent, error) {
	agent := &migratedAgent{deployment: clusterAgent}
	if err := agent.find(ctx, cluster, agentRelease); err != nil {
		return nil, err
	}
	installed, err := cluster.installedFor(ctx)
	if err != nil {
		return nil, fmt.Errorf("identifying the member on %s: %w", cluster.role, err)
	}
	if installed.server == "" {
		return nil, fmt.Errorf("%s is no member yet: the agent has no credential in Secret %s; helm --kube-context %s -n %s uninstall %s, and "+
			"muster join registers it",
			cluster.role, clusterAgent, cluster.contextName(), agentRelease.namespace, agentRelease.chart)
	}
	record := &fleet.Cluster{}
	if err := hub.Get(ctx, installed.record, record); apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil, &elsewhere{fmt.Errorf("%s is Cluster %s of the hub at %s, and this hub has none of that name: say its --context, or take it "+
			"here by muster move --context %s --hub-context %s",
			cluster.role, installed.record, installed.server, cluster.contextName(), hub.contextName()), installed, nil}
	} else if err != nil {
		return nil, err
	}
	agent.record = record
	user, err := hub.userOf(ctx, installed.token)
	if err != nil {
		return nil, err
	}
	if namespace := membership.Namespace(record); !strings.HasPrefix(user, "system:serviceaccount:"+namespace+":") {
		err := notItsMember(m.title(record), cluster, installed.server)
		if installed.server != hub.server { // a Cluster of another hub may have the same name
			err = fmt.Errorf("%w; muster move --context %s --hub-context %s takes it here", err, cluster.contextName(), hub.contextName())
		}
		return nil, err
	}
	if inPlace, err := hub.registeredByRancher(ctx, record, user); err != nil {
		return nil, err
	} else if inPlace {
		err := fmt.Errorf("%s is registered by the hub of Rancher Fleet that was in the place of this one", m.title(record))
		return nil, &elsewhere{err, installed, record}
	}
	if agent.imported {
		return nil, &elsewhere{fmt.Errorf("%s has an agent from a hub of Rancher Fleet, without a release", m.title(record)), installed,
			record}
	}
	agent.account = user
	agent.native = func(ctx context.Context) (bool, error) { return hub.takesForOurs(ctx, record) }
	native, err := agent.native(ctx)
	if err != nil {
		return nil, err
	}
	if native && record.Status.Agent.Account == "" {
		agent.stays = m.title(record) + " has a credential of its own, which ends and which the agent of before cannot renew: it needs a " +
			"registration token for just this Cluster, as docs/migration.md says"
	}
	return agent, nil
}

// takesForOurs reports whether the hub recognizes a Cluster's agent as Muster's. The condition
// AgentUpToDate covers only managed agents.
func (c *checked) takesForOurs(ctx context.Context, record *fleet.Cluster) (bool, error) {
	account := kube.CoreMetadata("ServiceAccount")
	key := types.NamespacedName{Namespace: membership.Namespace(record), Name: naming.MemberServiceAccount}
	if err := c.Get(ctx, key, account); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ServiceAccount %s: %w", key, err)
	}
	return membership.KindOf(account) == membership.Native, nil
}

// kubeFleetAgent finds the agent of a MemberCluster.
func (m *migrator) kubeFleetAgent(ctx context.Context, cluster, hub *checked) (*migratedAgent, error) {
	agent := &migratedAgent{deployment: memberAgent}
	release, err := cluster.memberRelease(ctx)
	if err != nil {
		return nil, err
	}
	if err := agent.find(ctx, cluster, release); err != nil {
		return nil, err
	}
	last := agent.revisions[len(agent.revisions)-1]
	set := func(fields ...string) string {
		for _, values := range []map[string]any{last.Config, last.Chart.Values} {
			if value, _, _ := unstructured.NestedString(values, fields...); value != "" {
				return value
			}
		}
		return ""
	}
	secret, record := &corev1.Secret{}, &clusterv1beta1.MemberCluster{}
	key := types.NamespacedName{Namespace: set("secret", "namespace"), Name: set("secret", "name")}
	if err := cluster.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the token of the agent on %s: %w", cluster.role, err)
	}
	name := set("config", "memberClusterName")
	if err := hub.Get(ctx, client.ObjectKey{Name: name}, record); apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil, fmt.Errorf("%s is MemberCluster %s of the hub at %s, and this hub has none of that name: say its --context",
			cluster.role, name, set("config", "hubURL"))
	} else if err != nil {
		return nil, err
	}
	agent.record = record
	user, err := hub.userOf(ctx, string(secret.Data["token"]))
	if err != nil {
		return nil, err
	}
	if user == "" || user != userOf(record.Spec.Identity) {
		return nil, notItsMember(m.title(record), cluster, set("config", "hubURL"))
	}
	agent.prepare = cluster.keepAppliedWorks
	agent.native = func(ctx context.Context) (bool, error) {
		report := &clusterv1beta1.InternalMemberCluster{}
		err := hub.Get(ctx, types.NamespacedName{Namespace: membership.Namespace(record), Name: name}, report)
		return report.Status.AgentVersion != "", client.IgnoreNotFound(err)
	}
	return agent, nil
}

// find reads the release of an agent.
func (a *migratedAgent) find(ctx context.Context, cluster *checked, r chartRelease) (err error) {
	a.cluster = cluster
	if a.helm, err = cluster.helm(r); err != nil {
		return err
	}
	if a.revisions, err = a.helm.history(); err != nil {
		return err
	}
	if len(a.revisions) == 0 && r == agentRelease {
		if err := a.findImported(ctx); err != nil {
			return err
		}
	}
	if len(a.revisions) == 0 {
		return fmt.Errorf("%s has no release %s in namespace %s, so there is no agent to migrate; to register the cluster: muster join",
			cluster.role, r.chart, r.namespace)
	}
	return nil
}

// findImported finds an agent installed by Rancher Fleet's hub without a release, and makes a
// revision of it.
func (a *migratedAgent) findImported(ctx context.Context) error {
	found, err := a.cluster.imported(ctx)
	if err != nil || len(found) == 0 {
		return err
	}
	revision, err := a.helm.asRevision(found)
	a.imported, a.revisions = true, []*helm.Release{revision}
	return err
}

// memberRelease is the release of the chart member-agent, in whichever namespace it is.
func (c *checked) memberRelease(ctx context.Context) (chartRelease, error) {
	revisions := &metav1.PartialObjectMetadataList{}
	revisions.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := c.List(ctx, revisions, client.MatchingLabels{"owner": "helm", "name": memberAgent.Name}); err != nil {
		return chartRelease{}, fmt.Errorf("finding the release %s on %s: %w", memberAgent.Name, c.role, err)
	}
	var namespaces []string
	for _, r := range revisions.Items {
		namespaces = append(namespaces, r.Namespace)
	}
	slices.Sort(namespaces)
	switch namespaces = slices.Compact(namespaces); len(namespaces) {
	case 0:
		return chartRelease{memberAgent.Name, memberToken.Namespace}, nil
	case 1:
		return chartRelease{memberAgent.Name, namespaces[0]}, nil
	}
	return chartRelease{}, fmt.Errorf("%s has a release %s in each of the namespaces %s: helm uninstall the one that is not used",
		c.role, memberAgent.Name, strings.Join(namespaces, ", "))
}

// keepAppliedWorks makes Helm keep the CRD of AppliedWorks, part of KubeFleet's chart. Without
// the CRD, the member would lose all placed objects.
func (c *checked) keepAppliedWorks(ctx context.Context) error {
	definition := kube.Metadata(definitions)
	name := "appliedworks." + placement.GroupVersion.Group
	if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("reading the definition of AppliedWorks on %s: %w", c.role, err)
	}
	if err := kube.Annotate(ctx, c, definition, map[string]any{"helm.sh/resource-policy": "keep"}); err != nil {
		return fmt.Errorf("protecting the definition of AppliedWorks on %s from Helm: %w", c.role, err)
	}
	return nil
}

// userOf returns the user of a token on a hub; "" if the hub rejects the token.
func (c *checked) userOf(ctx context.Context, token string) (string, error) {
	if token == "" {
		return "", nil
	}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("getting the user of the agent's credential from %s: %w", c.role, err)
	}
	return review.Status.UserInfo.Username, nil
}

// userOf returns the user of an identity.
func userOf(identity rbacv1.Subject) string {
	if identity.Kind == rbacv1.ServiceAccountKind {
		return "system:serviceaccount:" + identity.Namespace + ":" + identity.Name
	}
	return identity.Name
}

func notItsMember(title string, cluster *checked, server string) error {
	return errors.New("the agent on " + cluster.role + " has no credential that this hub accepts for " + title + ": its hub is at " + server)
}

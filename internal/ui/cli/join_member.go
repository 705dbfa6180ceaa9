package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// memberTokenLife limits the first token of a MemberCluster's agent. The agent exchanges it for
// a credential of its own and renews the credential.
const memberTokenLife = 24 * time.Hour

// The label recommended by Kubernetes marks the objects from join on a member.
const (
	labelMadeBy = "app.kubernetes.io/managed-by"
	madeByUs    = "muster"
)

var (
	// memberAgent is the Deployment of the chart member-agent. memberToken is the Secret with
	// the hub's token for the chart.
	memberAgent = types.NamespacedName{Namespace: naming.MemberSystemNamespace, Name: "member-agent"}
	memberToken = types.NamespacedName{Namespace: "default", Name: naming.HubTokenSecret}
)

// joinMember registers a cluster as a MemberCluster, with its own account on the hub.
func (j *joiner) joinMember(ctx context.Context, cluster, hub *checked) error {
	j.name = j.memberName()
	account := accountOfMember(j.name)
	account.Labels = map[string]string{labelMadeBy: madeByUs}
	record := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: j.name, Labels: j.labels}}
	record.Spec.Identity = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	found, err := j.memberThere(ctx, hub, record)
	if err != nil {
		return err
	}
	values, err := j.memberValues(found, hub)
	if err != nil {
		return err
	}
	release, err := j.mayTakeMember(ctx, cluster, hub, values)
	if err != nil {
		return err
	}
	if _, err := cluster.ownToken(ctx); err != nil {
		return err
	}
	if err := j.ensureNamespace(ctx, hub, naming.MemberSystemNamespace); err != nil {
		return err
	}
	if err := j.ensureAccount(ctx, hub, account, found != nil); err != nil {
		return err
	}
	if found == nil {
		if err := j.makeMember(ctx, hub, record); err != nil {
			return err
		}
	}
	token, err := kube.RequestToken(ctx, hub.SubResource("token"), account, memberTokenLife)
	if err != nil {
		return err
	}
	if err := j.ensureToken(ctx, cluster, token); err != nil {
		return err
	}
	if err := j.installAgent(ctx, cluster, release, values); err != nil {
		return err
	}
	return j.followMember(ctx, cluster, hub)
}

// accountOfMember returns the account that join makes for a MemberCluster.
func accountOfMember(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: name + "-hub-cluster-access"}}
}

// makeMember creates the MemberCluster. Right after muster init, the API server may not serve
// the kind yet.
func (j *joiner) makeMember(ctx context.Context, hub *checked, record *clusterv1beta1.MemberCluster) error {
	unseen, err := await(ctx, &j.progress, func(ctx context.Context) (bool, error) {
		err := hub.Create(ctx, record)
		if err != nil && !apierrors.IsServiceUnavailable(err) {
			err = final{err}
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("creating MemberCluster %s: %w", j.name, cmp.Or(unseen, err))
	}
	j.progress.step("MemberCluster %s is created", j.name)
	return nil
}

// memberValues returns the values of the chart member-agent. A member with an earlier
// revocation has another member namespace, so the values name it. Empty values replace earlier
// ones.
func (j *joiner) memberValues(found *clusterv1beta1.MemberCluster, hub *checked) (map[string]any, error) {
	config := map[string]any{
		"hubURL": cmp.Or(j.hubURL, hub.server), "hubCA": cmp.Or(j.caIn, string(hub.config.CAData)),
		"memberClusterName": j.name, "memberNamespace": "",
	}
	if found != nil && membership.Epoch(found) > 0 {
		config["memberNamespace"] = membership.Namespace(found)
	}
	// null removes the value of an earlier join
	return j.over(map[string]any{"config": config, "namespace": naming.MemberSystemNamespace, "hubKubeconfig": nil})
}

// mayTakeMember returns the release of the agent. It refuses a member of another hub, or of
// another name.
func (j *joiner) mayTakeMember(ctx context.Context, cluster, hub *checked, values map[string]any) (chartRelease, error) {
	release, err := cluster.memberRelease(ctx)
	if err != nil {
		return release, err
	}
	helm, err := cluster.helm(release)
	if err != nil {
		return release, err
	}
	if _, _, err := helm.plan(); err != nil { // a release of another chart
		return release, err
	}
	revisions, err := helm.history()
	if err != nil || len(revisions) == 0 || revisions[len(revisions)-1].Info.Status == common.StatusUninstalled {
		return release, err
	}
	set := func(of map[string]any, field string) string {
		value, _, _ := unstructured.NestedString(of, "config", field)
		return strings.TrimSuffix(value, "/")
	}
	current := basis(revisions).Config
	server, name := set(current, "hubURL"), set(current, "memberClusterName")
	namespace, _ := current["namespace"].(string)
	never, err := cluster.neverJoined(ctx, cmp.Or(namespace, memberAgent.Namespace))
	switch {
	case err != nil:
		return release, fmt.Errorf("checking whether %s has joined another hub: %w", cluster.role, err)
	case never: // an earlier run may have had a wrong address
		return release, nil
	case server != "" && server != set(values, "hubURL"):
		return release, fmt.Errorf("%s is a member of the hub at %s, as MemberCluster %s: to have it join another one, muster leave %s there if "+
			"it has joined, and then helm --kube-context %s -n %s uninstall %s; or if that is this hub, use --hub-url %s",
			cluster.role, server, name, name, cluster.contextName(), release.namespace, release.chart, server)
	case name == "" || name == set(values, "memberClusterName"):
		return release, nil
	}
	if hub == nil { // the command has no access to it
		return release, fmt.Errorf("%s is a member already, as MemberCluster %s: use --name %s, or leave the fleet first",
			cluster.role, name, name)
	}
	if err := hub.Get(ctx, client.ObjectKey{Name: name}, &clusterv1beta1.MemberCluster{}); apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return release, nil // it has left
	}
	return release, fmt.Errorf("%s is a member already, as MemberCluster %s: use --name %s, or run muster leave %s first",
		cluster.role, name, name, name)
}

// neverJoined reports whether the agent of a MemberCluster has never joined a hub. It still has
// only the token of this command, without a credential from the hub, and is not ready.
func (c *checked) neverJoined(ctx context.Context, namespace string) (bool, error) {
	token, credential := kube.CoreMetadata("Secret"), kube.CoreMetadata("Secret")
	if err := c.Get(ctx, memberToken, token); err != nil || token.Labels[labelMadeBy] != madeByUs {
		return false, client.IgnoreNotFound(err)
	}
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: naming.MemberAgentCredentialSecret}, credential)
	if !apierrors.IsNotFound(err) {
		return false, err
	}
	agent := &appsv1.Deployment{}
	err = c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: memberAgent.Name}, agent)
	return agent.Status.ReadyReplicas == 0, client.IgnoreNotFound(err)
}

// memberThere returns the MemberCluster of the name, or nil. Its identity must be the same.
func (j *joiner) memberThere(ctx context.Context, hub *checked,
	record *clusterv1beta1.MemberCluster) (*clusterv1beta1.MemberCluster, error) {
	found := &clusterv1beta1.MemberCluster{}
	if err := hub.Get(ctx, client.ObjectKeyFromObject(record), found); apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading MemberCluster %s: %w", j.name, err)
	}
	has, identity := found.Spec.Identity, record.Spec.Identity
	switch {
	case found.DeletionTimestamp != nil:
		return nil, fmt.Errorf("MemberCluster %s is leaving; join again when it is gone", j.name)
	case has.Kind != identity.Kind || has.Namespace != identity.Namespace || has.Name != identity.Name:
		return nil, fmt.Errorf("MemberCluster %s exists with the identity %s %s/%s, not ServiceAccount %s/%s: use another --name, or correct "+
			"its spec.identity", j.name,
			has.Kind, has.Namespace, has.Name, identity.Namespace, identity.Name)
	}
	return found, nil
}

// ensureAccount creates the account of a member on the hub. It uses an existing account only if
// a MemberCluster names it: the account may have more rights than a member needs.
func (j *joiner) ensureAccount(ctx context.Context, hub *checked, account *corev1.ServiceAccount, named bool) error {
	err := hub.Create(ctx, account)
	if apierrors.IsAlreadyExists(err) {
		err = hub.Get(ctx, client.ObjectKeyFromObject(account), account)
		if err == nil && !named && account.Labels[labelMadeBy] != madeByUs {
			return fmt.Errorf("ServiceAccount %s/%s on the hub has another owner: delete it, or use another --name", account.Namespace, account.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("creating the account of MemberCluster %s on the hub: %w", j.name, err)
	}
	return nil
}

// ownToken returns the Secret with the token for the chart, or nil. It refuses a Secret of another
// owner.
func (c *checked) ownToken(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	secret := kube.CoreMetadata("Secret")
	switch err := c.Get(ctx, memberToken, secret); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Secret %s on %s: %w", memberToken, c.role, err)
	case secret.Labels[labelMadeBy] != madeByUs:
		//nolint:staticcheck // a kind
		return nil, fmt.Errorf("Secret %s on %s has another owner, with the token of a hub: delete it to join with another token",
			memberToken, c.role)
	}
	return secret, nil
}

// ensureToken writes the token to the Secret for the chart. It leaves a Secret of another owner
// alone.
func (j *joiner) ensureToken(ctx context.Context, cluster *checked, token string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: memberToken.Namespace, Name: memberToken.Name, Labels: map[string]string{labelMadeBy: madeByUs}},
		Type:       corev1.SecretTypeOpaque, StringData: map[string]string{"token": token},
	}
	existing, err := cluster.ownToken(ctx)
	switch {
	case err != nil:
		return err
	case existing == nil:
		err = cluster.Create(ctx, secret)
	default:
		secret.UID, secret.ResourceVersion = existing.UID, existing.ResourceVersion
		err = cluster.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("storing the token in Secret %s on %s: %w", memberToken, cluster.role, err)
	}
	return nil
}

// followMember prints the progress of a MemberCluster.
func (j *joiner) followMember(ctx context.Context, cluster, hub *checked) error {
	record := &clusterv1beta1.MemberCluster{}
	unseen, err := await(ctx, &j.progress, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKey{Name: j.name}, record); err != nil {
			return false, err
		}
		cause, ready, err := cluster.causeOf(ctx, memberAgent.Namespace, memberAgent.Name)
		if err != nil {
			return false, err
		}
		if cause != nil {
			j.progress.hindrance("the agent", cause)
			return false, nil
		}
		j.progress.step("MemberCluster %s is %s%s", j.name, view.State(record), because(record))
		if joined := ready && meta.IsStatusConditionTrue(record.Status.Conditions, clusterv1beta1.ConditionJoined); !joined {
			return false, nil
		}
		return j.settled(view.State(record)), nil
	})
	switch {
	case err == nil:
		return j.show(ctx, hub, record)
	case !wait.Interrupted(err) && ctx.Err() == nil:
		return err
	}
	return j.failed(ctx, unseen, cluster, memberAgent, record)
}

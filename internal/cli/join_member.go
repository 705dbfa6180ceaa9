package cli

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/view"
)

// memberTokenLife is how long the token lives with which the agent of a MemberCluster begins: it gets a credential of its own for it, which is renewed.
const memberTokenLife = 24 * time.Hour

// What join makes on a member has the label that Kubernetes recommends, so that it can tell it from what others have made.
const (
	labelMadeBy = "app.kubernetes.io/managed-by"
	madeByUs    = "muster"
)

var (
	// memberAgent is the Deployment of the chart member-agent, and memberToken the Secret that this chart takes the token of the hub from.
	memberAgent = types.NamespacedName{Namespace: naming.MemberSystemNamespace, Name: "member-agent"}
	memberToken = types.NamespacedName{Namespace: "default", Name: "hub-kubeconfig-secret"}
)

// joinMember registers a cluster as a MemberCluster, with an account of its own on the hub.
func (j *joiner) joinMember(ctx context.Context, cluster, hub *checked) error {
	if j.name == "" {
		j.name = j.contextName()
	}
	if err := j.ensureNamespace(ctx, hub, naming.MemberSystemNamespace); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: j.name + "-hub-cluster-access"}}
	account.Labels = map[string]string{labelMadeBy: madeByUs}
	record := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: j.name, Labels: j.labels}}
	record.Spec.Identity = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	exists, err := j.memberExists(ctx, hub, record)
	if err != nil {
		return err
	}
	if err := j.ensureAccount(ctx, hub, account, exists); err != nil {
		return err
	}
	if !exists {
		if err := hub.Create(ctx, record); err != nil {
			return fmt.Errorf("making MemberCluster %s: %w", j.name, err)
		}
		j.progress.step("MemberCluster %s is made", j.name)
	}
	token, err := kube.RequestToken(ctx, hub.SubResource("token"), account, memberTokenLife)
	if err != nil {
		return err
	}
	if err := j.ensureToken(ctx, cluster, token); err != nil {
		return err
	}
	config := map[string]any{"hubURL": hub.server, "hubCA": string(hub.config.CAData), "memberClusterName": j.name}
	if j.hubURL != "" {
		config["hubURL"] = j.hubURL
	}
	if j.caIn != "" {
		config["hubCA"] = j.caIn
	}
	values, err := j.over(map[string]any{"config": config, "namespace": naming.MemberSystemNamespace})
	if err != nil {
		return err
	}
	if err := j.installAgent(ctx, chartRelease{"member-agent", memberToken.Namespace}, values); err != nil {
		return err
	}
	return j.followMember(ctx, cluster, hub)
}

// memberExists says whether there is a MemberCluster of that name already, which has to have the same identity.
func (j *joiner) memberExists(ctx context.Context, hub *checked, record *clusterv1beta1.MemberCluster) (bool, error) {
	found := &clusterv1beta1.MemberCluster{}
	if err := hub.Get(ctx, client.ObjectKeyFromObject(record), found); apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("looking for MemberCluster %s: %w", j.name, err)
	}
	has, identity := found.Spec.Identity, record.Spec.Identity
	switch {
	case found.DeletionTimestamp != nil:
		return false, fmt.Errorf("MemberCluster %s is leaving; join again when it is gone", j.name)
	case has.Kind != identity.Kind || has.Namespace != identity.Namespace || has.Name != identity.Name:
		return false, fmt.Errorf("MemberCluster %s is there with the identity %s %s/%s, not ServiceAccount %s/%s: say another --name, or correct its spec.identity", j.name,
			has.Kind, has.Namespace, has.Name, identity.Namespace, identity.Name)
	}
	return true, nil
}

// ensureAccount makes the account of a member on the hub. One that others have made is only used if a MemberCluster names it: it may have rights that nobody meant to give to a member.
func (j *joiner) ensureAccount(ctx context.Context, hub *checked, account *corev1.ServiceAccount, named bool) error {
	err := hub.Create(ctx, account)
	if apierrors.IsAlreadyExists(err) {
		err = hub.Get(ctx, client.ObjectKeyFromObject(account), account)
		if err == nil && !named && account.Labels[labelMadeBy] != madeByUs {
			return fmt.Errorf("ServiceAccount %s/%s on the hub is somebody else's: delete it, or say another --name", account.Namespace, account.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("making the account of MemberCluster %s on the hub: %w", j.name, err)
	}
	return nil
}

// ensureToken puts the token into the Secret from which the chart takes it. What somebody else has put there is not touched.
func (j *joiner) ensureToken(ctx context.Context, cluster *checked, token string) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: memberToken.Namespace, Name: memberToken.Name, Labels: map[string]string{labelMadeBy: madeByUs}},
		Type:       corev1.SecretTypeOpaque, StringData: map[string]string{"token": token},
	}
	err := cluster.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		has := &corev1.Secret{}
		if err := cluster.Get(ctx, memberToken, has); err != nil {
			return err
		}
		if has.Labels[labelMadeBy] != madeByUs {
			return fmt.Errorf("Secret %s on %s is somebody else's, with the token of a hub: delete it if the cluster is to join with another one", memberToken, cluster.role) //nolint:staticcheck // a kind
		}
		secret.UID, secret.ResourceVersion = has.UID, has.ResourceVersion
		err = cluster.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("storing the token in Secret %s on %s: %w", memberToken, cluster.role, err)
	}
	return nil
}

// followMember shows what becomes of a MemberCluster.
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

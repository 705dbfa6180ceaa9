// Package identity keeps the identity of the hub: its key and its term. It decides whether the hub
// works or stands still, because another hub with the same key has a higher term.
//
// It writes the Secret muster-hub-identity in the hub's namespace. muster restore, muster hub
// promote and muster hub demote write it too. Its invariant: only a term signed with the hub's own
// key stops the hub.
package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/retry"
)

// ErrFenced means that the hub must change nothing any more.
var ErrFenced = errors.New("another hub with the same key has a higher term: this hub changes nothing")

// Keeper keeps the identity of one hub process. A nil Keeper knows no term.
type Keeper struct {
	secrets    *kubeclient.Resource[*corev1.Secret, *corev1.SecretList]
	namespaces *kubeclient.Resource[*corev1.Namespace, *corev1.NamespaceList]
	namespace  string
	log        logr.Logger
	mirror     *kubeclient.Mirror[*corev1.Secret]
	changed    chan struct{}

	mu sync.Mutex
	// cluster is the UID of the namespace kube-system.
	cluster string
	// current is the identity in force, and own its signed term; nil before the first Load with one.
	current *term.Identity
	own     *clusterv1beta1.HubTerm
	// proof is a term that stops the hub, not stored yet.
	proof *clusterv1beta1.HubTerm
	// unproven has the members with a higher term in their reports, but no proof.
	unproven map[string]bool
}

// New returns the Keeper of a hub in its namespace. It sends no request.
func New(config *rest.Config, namespace string, log logr.Logger) (*Keeper, error) {
	connection, err := kubeclient.Connect(config)
	if err != nil {
		return nil, err
	}
	core, err := connection.REST(corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{}, 1)
	return &Keeper{
		secrets:    kubeclient.By[corev1.Secret, corev1.SecretList](core, "secrets", namespace),
		namespaces: kubeclient.By[corev1.Namespace, corev1.NamespaceList](core, "namespaces", ""),
		namespace:  namespace, log: log, changed: changed, mirror: kubeclient.NewMirror[*corev1.Secret](changed),
		unproven: map[string]bool{},
	}, nil
}

// Follow watches the identity until ctx ends.
func (k *Keeper) Follow(ctx context.Context) {
	kubeclient.FollowOne(ctx, k.mirror, k.secrets, naming.HubIdentitySecret)
}

func (k *Keeper) secretName() string { return k.namespace + "/" + naming.HubIdentitySecret }

// Load reads the identity, and stores a proof against this hub in it. Without an identity, the hub
// is a new one, and Create makes it.
func (k *Keeper) Load(ctx context.Context) error {
	if err := k.readCluster(ctx); err != nil {
		return err
	}
	secret, err := k.secrets.Get(ctx, naming.HubIdentitySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", k.secretName(), err)
	}
	identity, err := k.parse(secret)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	own := identity.On(k.cluster)
	if k.proof != nil && term.Fences(k.proof, own) && !term.Supersedes(identity.FencedBy, k.proof) {
		identity.FencedBy = k.proof
		identity.Fill(secret)
		if _, err := k.secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("writing the proof of another hub into Secret %s: %w", k.secretName(), err)
		}
	}
	k.current, k.own, k.proof = &identity, own, nil
	k.observe()
	return nil
}

func (k *Keeper) readCluster(ctx context.Context) error {
	system, err := k.namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading namespace %s, the identity of the hub's cluster: %w", metav1.NamespaceSystem, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cluster = string(system.UID)
	return nil
}

// parse reads an identity, with the remedy for an unusable one.
func (k *Keeper) parse(secret *corev1.Secret) (term.Identity, error) {
	identity, err := term.FromSecret(secret)
	if err != nil {
		return identity, fmt.Errorf("the Secret %s is no identity of a hub, because %w: restore it; if it is lost, delete it, and the hub "+
			"makes another key", k.secretName(), err)
	}
	return identity, nil
}

// TakeOver stores that the controllers of the hub have started with the term in force. muster hub
// promote waits for it.
func (k *Keeper) TakeOver(ctx context.Context) error {
	for backoff := retry.Unreachable(); ; {
		err := k.takeOver(ctx)
		if err == nil || ctx.Err() != nil {
			return nil //nolint:nilerr // the hub stops
		}
		k.log.Info("Failed to store the term in force", "reason", err.Error())
		_ = retry.Wait(ctx, clock.RealClock{}, backoff.Step()) // the loop ends with ctx
	}
}

func (k *Keeper) takeOver(ctx context.Context) error {
	secret, err := k.secrets.Get(ctx, naming.HubIdentitySecret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", k.secretName(), err)
	}
	identity, err := k.parse(secret)
	if err != nil {
		return err
	}
	own := k.Term()
	if own == nil || identity.Term != own.Term || identity.InForce == own.Term {
		return nil // it is stored, or the hub begins anew with another term
	}
	identity.InForce = own.Term
	identity.Fill(secret)
	if _, err := k.secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing Secret %s: %w", k.secretName(), err)
	}
	return nil
}

// Create makes the identity of a new hub, unless there is one.
func (k *Keeper) Create(ctx context.Context) error {
	k.mu.Lock()
	current := k.current
	k.mu.Unlock()
	if current != nil {
		return nil
	}
	identity, err := term.NewIdentity()
	if err != nil {
		return err
	}
	if err := k.write(ctx, identity); err != nil {
		return err
	}
	return k.Load(ctx)
}

// write creates the Secret of an identity, unless there is one.
func (k *Keeper) write(ctx context.Context, identity term.Identity) error {
	_, err := k.secrets.Create(ctx, identity.Secret(k.namespace), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", k.secretName(), err)
	}
	return nil
}

// Stopped returns the reason of this hub to stand still; "" if it works.
func (k *Keeper) Stopped() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil {
		return ""
	}
	return k.current.Stopped(k.cluster)
}

// Term returns the signed term for members; nil if there is none.
func (k *Keeper) Term() *clusterv1beta1.HubTerm {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.own.DeepCopy()
}

// Changed returns once another identity is in force, or ctx ends. Meanwhile, it writes the identity
// in force again if its Secret was deleted.
func (k *Keeper) Changed(ctx context.Context) {
	for backoff := retry.Unreachable(); ctx.Err() == nil && !k.differs(); {
		if current := k.lost(); current != nil {
			err := k.write(ctx, *current)
			if err != nil && ctx.Err() == nil {
				k.log.Info("Failed to restore the identity", "reason", err.Error())
				_ = retry.Wait(ctx, clock.RealClock{}, backoff.Step()) // the loop ends with ctx
				continue
			}
		}
		backoff = retry.Unreachable()
		select {
		case <-ctx.Done():
		case <-k.changed:
		}
	}
}

// lost returns the identity in force if its Secret was deleted.
func (k *Keeper) lost() *term.Identity {
	secret, synced := k.mirror.Get()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !synced || secret != nil {
		return nil
	}
	return k.current
}

func (k *Keeper) differs() bool {
	secret, synced := k.mirror.Get()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.proof != nil:
		return true
	case !synced || k.current == nil || secret == nil:
		return false
	}
	identity, err := k.parse(secret)
	if err != nil {
		k.log.Info("The identity in force stays", "reason", err.Error())
		return false
	}
	return !bytes.Equal(identity.Seed(), k.current.Seed()) || identity.Term != k.current.Term ||
		identity.Stopped(k.cluster) != k.current.Stopped(k.cluster)
}

// Check returns ErrFenced if a member proves a higher term of this hub's key. If the signature is
// not valid, it only counts the member.
func (k *Keeper) Check(obeyed *clusterv1beta1.HubTerm, member string) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !term.Claims(obeyed, k.own) {
		k.forget(member)
		return nil
	}
	if err := term.Verify(obeyed); err != nil {
		if !k.unproven[member] && len(k.unproven) < maxUnproven {
			k.log.Info("A member reports a higher term of the hub without a proof, and is ignored", "member", member, "reason", err.Error())
			k.unproven[member] = true
			k.observe()
		}
		return nil
	}
	if k.proof == nil {
		k.log.Info("A member obeys another hub with the same key and a higher term: this hub stops", "member", member,
			"hub", term.Name(obeyed))
		k.proof = obeyed.DeepCopy()
		kubeclient.Notify(k.changed)
	}
	return ErrFenced
}

// Forget drops a former member.
func (k *Keeper) Forget(member string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(member)
}

func (k *Keeper) forget(member string) {
	if k.unproven[member] {
		delete(k.unproven, member)
		k.observe()
	}
}

// maxUnproven bounds the number of counted members.
const maxUnproven = 1000

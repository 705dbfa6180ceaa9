package membercluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/kube"
)

// A hub from muster restore has another API server. The agent of a MemberCluster has no token for
// it, except for a token of the standby. The backup has the public key of the agent:
//
//	restored ──► credential sealed to the key ──► published ──► used by the agent ──► withdrawn
//
// Until the agent comes, the hub replaces the credential twice in its life, for a year.

// restoredKey returns the public key of an agent from a backup; nil if there is none, or another
// key is pinned to the MemberCluster.
func restoredKey(mc *clusterv1beta1.MemberCluster) []byte {
	key, err := base64.StdEncoding.DecodeString(mc.Annotations[fleet.AnnotationRestoredKey])
	if err != nil || !credential.ValidAgentKey(key) || credential.Fingerprint(key) != mc.Annotations[fleet.AnnotationAgentKey] {
		return nil
	}
	return key
}

// observeReturn lets the hub issue a credential to an agent that has not come to this restored hub.
func (r *reconciliation) observeReturn() {
	o := &r.o
	if o.admitted() && r.awaitsReturn() {
		o.credential.Restored = restoredKey(r.mc)
	}
	until := o.account.CreationTimestamp.Add(reconnectLife)
	o.credential.Awaited = o.credential.Awaited || o.returns() && o.accountFits() && r.Clock.Now().Before(until)
}

// awaitsReturn reports whether no agent has come to this restored hub.
func (r *reconciliation) awaitsReturn() bool {
	return restoredKey(r.mc) != nil && !r.o.Seen() && r.o.reportedKey() == ""
}

// returns reports whether the hub awaits an agent of the lost hub.
func (o observed) returns() bool { return len(o.credential.Restored) > 0 }

// publish shows the credential in the report to the agent of a lost hub.
func (r *reconciliation) publish(ctx context.Context) error {
	o := &r.o
	if !o.returns() || o.Report == nil || o.Report.Spec.Credential == nil || len(o.Report.Spec.Credential.Sealed) == 0 {
		return nil
	}
	key := standby.PublishedAt(r.SystemNamespace, o.credential.Key)
	published, err := standby.Published(key, ownerOf(r.mc), o.Report.Spec.Credential)
	if err != nil {
		return err
	}
	have := &corev1.ConfigMap{}
	err = r.Live.Get(ctx, key, have)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %s, the credential for the agent of a lost hub: %w", key, err)
	}
	if err == nil && maps.Equal(have.Data, published.Data) {
		return nil
	}
	role, binding := standby.ReadingPublished(r.SystemNamespace)
	missing, err := kube.Missing(ctx, r.Client, kube.MetadataOf(r.Client.Scheme()), role, binding)
	if err != nil {
		return err
	}
	return kube.Ensure(ctx, r.Client, append(missing, published)...)
}

func ownerOf(mc *clusterv1beta1.MemberCluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(mc, clusterv1beta1.GroupVersion.WithKind("MemberCluster"))
}

// endReturn removes the published credential and the restored key, once the agent has come or has
// another key.
func (r *reconciliation) endReturn(ctx context.Context) error {
	if _, restored := r.mc.Annotations[fleet.AnnotationRestoredKey]; !restored || r.awaitsReturn() {
		return nil
	}
	if key := restoredKey(r.mc); key != nil {
		at := standby.PublishedAt(r.SystemNamespace, credential.Fingerprint(key))
		published, err := standby.Published(at, ownerOf(r.mc), nil)
		if err != nil {
			return err
		}
		if err := kube.Delete(ctx, r.Client, published); err != nil {
			return err
		}
	}
	before := r.mc.DeepCopy()
	delete(r.mc.Annotations, fleet.AnnotationRestoredKey)
	if err := kube.Patch(ctx, r.Client, before, r.mc); err != nil {
		return fmt.Errorf("removing the restored key of MemberCluster %s: %w", r.mc.Name, err)
	}
	return nil
}

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	inventoryv1alpha1 "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/inventory"
	"github.com/muster-fleet/muster/internal/hub/runtime/kubeconfig"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// provider is the exec plugin of the Cluster Inventory API for kubeconfigs in Secrets.
// execExtension passes the place of the Secret to it (KEP-5339).
const (
	provider      = "kubeconfig-secretreader"
	execExtension = "client.authentication.k8s.io/exec"
)

// place is the content of the extension: the Secret with the credential.
type place struct {
	Name      string `json:"name"`
	Key       string `json:"key"`
	Namespace string `json:"namespace"`
}

var providersChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*inventoryv1alpha1.ClusterProfile), e.ObjectNew.(*inventoryv1alpha1.ClusterProfile)
	return !equality.Semantic.DeepEqual(before.Status.AccessProviders, after.Status.AccessProviders)
}}

// publish adds the access of readers to the ClusterProfiles of a member, or removes it.
func (c *Controller) publish(ctx context.Context, o observed, next decision) (decision, error) {
	if o.tool.name != clusterReader || !c.Profiles || next.action == keep {
		return next, nil
	}
	for _, namespace := range c.Config.Current().InventoryNamespaces() {
		before := &inventoryv1alpha1.ClusterProfile{}
		key := types.NamespacedName{Namespace: namespace, Name: naming.ClusterProfile(o.key.Namespace, o.key.Name)}
		err := c.Client.Get(ctx, key, before)
		if apierrors.IsNotFound(err) || err == nil && !inventory.Ours(before) {
			continue // its event enqueues the member
		} else if err != nil {
			return decision{}, fmt.Errorf("reading the ClusterProfile of %s: %w", o.key, err)
		}
		after := before.DeepCopy()
		taken, err := o.provide(&after.Status, next.action == apply)
		if err != nil {
			return decision{}, err
		}
		if taken {
			next = decision{keep, reasons.AccessSecretTaken, fmt.Sprintf("ClusterProfile %s/%s has an access provider %s of another writer; "+
				"remove it if you do not need it", before.Namespace, before.Name, provider)}
			continue
		}
		if err := kube.PatchStatus(ctx, c.Client, before, after); err != nil {
			return decision{}, err
		}
	}
	return next, nil
}

// provide adds the hub's entry to the access providers of a profile, or removes it. It changes
// nothing if another writer has an entry of the same name.
func (o observed) provide(status *inventoryv1alpha1.ClusterProfileStatus, given bool) (taken bool, err error) {
	isNamed := func(p inventoryv1alpha1.AccessProvider) bool { return p.Name == provider }
	index := slices.IndexFunc(status.AccessProviders, isNamed)
	switch {
	case index >= 0 && !o.wrote(status.AccessProviders[index]):
		return given, nil
	case !given:
		status.AccessProviders = slices.DeleteFunc(status.AccessProviders, isNamed)
		return false, nil
	}
	entry, err := o.entry()
	switch {
	case err != nil:
		return false, err
	case index < 0:
		status.AccessProviders = append(status.AccessProviders, entry)
	case !sameJSON(status.AccessProviders[index].Cluster.Raw, entry.Cluster.Raw):
		status.AccessProviders[index] = entry
	}
	return false, nil
}

// entry returns the access provider of the member. It has no credential.
func (o observed) entry() (inventoryv1alpha1.AccessProvider, error) {
	tls := o.kubeconfig.Config.TLSClientConfig
	secret, err := json.Marshal(place{o.tool.secretName(o.key), kubeconfig.Key, o.tool.namespace})
	if err != nil {
		return inventoryv1alpha1.AccessProvider{}, err
	}
	cluster, err := json.Marshal(clientcmdv1.Cluster{
		Server: server(o.kubeconfig), TLSServerName: tls.ServerName, InsecureSkipTLSVerify: tls.Insecure, CertificateAuthorityData: tls.CAData,
		Extensions: []clientcmdv1.NamedExtension{{Name: execExtension, Extension: runtime.RawExtension{Raw: secret}}},
	})
	return inventoryv1alpha1.AccessProvider{Name: provider, Cluster: runtime.RawExtension{Raw: cluster}}, err
}

// wrote reports whether an entry names the hub's Secret for this member.
func (o observed) wrote(entry inventoryv1alpha1.AccessProvider) bool {
	var cluster clientcmdv1.Cluster
	if json.Unmarshal(entry.Cluster.Raw, &cluster) != nil {
		return false
	}
	return slices.ContainsFunc(cluster.Extensions, func(e clientcmdv1.NamedExtension) bool {
		var secret place
		return e.Name == execExtension && json.Unmarshal(e.Extension.Raw, &secret) == nil && secret.Name == o.tool.secretName(o.key)
	})
}

// sameJSON reports whether two texts have the same content: the API server sorts the keys.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

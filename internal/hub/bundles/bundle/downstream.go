package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	kindSecret, kindConfigMap = "Secret", "ConfigMap"
	// maxCopied limits the objects in downstreamResources of one deployment.
	maxCopied = 16
	// labelCopiedFrom on a Secret or ConfigMap in a member namespace names the namespace of its
	// source.
	labelCopiedFrom = "muster/copied-from"
)

// reservedTypes are prefixes of the types of Secrets never copied: credentials of accounts and
// releases, and Secrets of the hub itself.
var reservedTypes = []string{"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/", "helm.sh/", "fleet.cattle.io/", "muster/"}

// original is an object in downstreamResources: the digest of its content, or the reason against a
// copy.
type original struct {
	digest  string
	problem error
}

// sourceKeys indexes Bundles by the objects in their downstreamResources.
func sourceKeys(o client.Object) (keys []string) {
	for _, resource := range delivery.CopiedBy(&o.(*fleet.Bundle).Spec) {
		keys = append(keys, sourceKey(resource.Kind, o.GetNamespace(), resource.Name))
	}
	return keys
}

func sourceKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// loadSources reads the objects in the downstreamResources of a Bundle after a change. A change
// makes the outcomes outdated.
func (c *Controller) loadSources(ctx context.Context, bundle *fleet.Bundle, state *computed) error {
	named := delivery.CopiedBy(&bundle.Spec)
	if len(named) == 0 {
		return nil
	}
	if err := c.sources.watch(ctx); err != nil {
		return err
	}
	if changed := c.sources.take(client.ObjectKeyFromObject(bundle)); state.sources != nil && !changed {
		return nil
	}
	sources, before := map[fleet.DownstreamResource]original{}, state.sources
	state.unread = nil
	for _, resource := range named {
		_, read, err := c.readSource(ctx, bundle.Namespace, resource)
		if err != nil {
			// Only the copies of this object wait. An already read object stays as it was.
			state.unread = errors.Join(state.unread, err)
			if read = before[resource]; read.digest == "" {
				read = original{problem: err}
			}
		}
		sources[resource] = read
	}
	if state.unread != nil {
		c.sources.note(client.ObjectKeyFromObject(bundle))
	}
	state.sources = sources
	clear(state.outcomes)
	return nil
}

// readSource reads an object in downstreamResources, and returns its copy without a namespace.
func (c *Controller) readSource(ctx context.Context, namespace string, resource fleet.DownstreamResource) (client.Object, original, error) {
	key := types.NamespacedName{Namespace: namespace, Name: resource.Name}
	var secret corev1.Secret
	var configMap corev1.ConfigMap
	var err error
	switch resource.Kind {
	case kindSecret:
		err = c.Live.Get(ctx, key, &secret)
	case kindConfigMap:
		err = c.Live.Get(ctx, key, &configMap)
	default:
		return nil, original{problem: fmt.Errorf("downstreamResources names a %q: it copies Secrets and ConfigMaps only", resource.Kind)}, nil
	}
	named := kube.Name(resource.Kind, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, original{
			problem: fmt.Errorf("%s, which the Bundle names, does not exist: create it, or remove its name from the Bundle", named),
		}, nil
	}
	if err != nil {
		return nil, original{}, fmt.Errorf("reading %s for members: %w", named, err)
	}
	if slices.ContainsFunc(reservedTypes, func(prefix string) bool { return strings.HasPrefix(string(secret.Type), prefix) }) {
		return nil, original{problem: fmt.Errorf("%s, which the Bundle names, has the type %s, and the hub copies no credentials "+
			"of accounts, releases or its own: name another Secret", named, secret.Type)}, nil
	}
	var copied client.Object = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: key.Name}, Type: secret.Type, Data: secret.Data}
	if resource.Kind == kindConfigMap {
		copied = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key.Name}, Data: configMap.Data, BinaryData: configMap.BinaryData}
	}
	text, err := json.Marshal(copied)
	return copied, original{digest: naming.Digest(text)}, err
}

// digestOfSources returns the digest of the objects copied for a deployment.
func (m *computed) digestOfSources(resources []fleet.DownstreamResource) (string, error) {
	if len(resources) > maxCopied {
		return naming.Digest(""), fmt.Errorf("downstreamResources and helm.secretName name %d objects for one Cluster: name at most %d",
			len(resources), maxCopied)
	}
	var text strings.Builder
	var problems []error
	for _, resource := range resources {
		is := m.sources[resource]
		problems = append(problems, is.problem)
		fmt.Fprintf(&text, "%s/%s %s\n", resource.Kind, resource.Name, is.digest)
	}
	return naming.Digest(text.String()), errors.Join(problems...)
}

// contentDigits of the hexadecimal digits of downstreamResourcesGeneration come from the content of
// the copies, namesDigits from their names. JSON keeps 13 digits exactly.
const namesDigits, contentDigits = 6, 7

// copiesGeneration returns the field downstreamResourcesGeneration for copies and the digest of
// their content.
func copiesGeneration(copies []fleet.DownstreamResource, digest string) int64 {
	names := naming.Digest(fmt.Append(nil, copies))
	number, err := strconv.ParseInt(names[:namesDigits]+digest[:contentDigits], 16, 64)
	if err != nil {
		panic(err) // a digest is hexadecimal
	}
	return max(number, 1)
}

// otherCopies reports whether two values of downstreamResourcesGeneration are for other names.
func otherCopies(before, after int64) bool {
	return before != 0 && before>>(4*contentDigits) != after>>(4*contentDigits)
}

// fetchCopies reads the objects for the copies of the targets to release. It returns the targets
// without unreadable objects, and reports whether an object has changed since the plan.
func (c *Controller) fetchCopies(ctx context.Context, o *observed, indexes []int, releases func(int) bool) (
	read []int, stale bool, err error) {
	key := client.ObjectKeyFromObject(o.bundle)
	sources := c.computedFor(key).sources
	o.copies = map[fleet.DownstreamResource]client.Object{}
	failures := map[fleet.DownstreamResource]error{}
	for _, i := range indexes {
		t := &o.targets[i]
		copies := t.copies
		if !releases(i) {
			copies = nil // a pause needs no copies
		}
		for _, resource := range copies {
			if o.copies[resource] == nil && failures[resource] == nil {
				copied, is, err := c.readSource(ctx, o.bundle.Namespace, resource)
				if err == nil && (copied == nil || is.digest != sources[resource].digest) {
					c.sources.note(key)
					return nil, true, nil
				}
				o.copies[resource], failures[resource] = copied, err
			}
			t.failure = errors.Join(t.failure, failures[resource])
		}
		if t.failure == nil {
			read = append(read, i)
		}
	}
	for _, failure := range failures {
		err = errors.Join(err, failure)
	}
	return read, false, err
}

// writeCopies writes the copies of a deployment to its member namespace.
func (c *Controller) writeCopies(ctx context.Context, o observed, d *fleet.BundleDeployment, resources []fleet.DownstreamResource) error {
	owner := metav1.OwnerReference{APIVersion: fleet.GroupVersion.String(), Kind: "BundleDeployment", Name: d.Name, UID: d.UID}
	for _, resource := range resources {
		desired := o.copies[resource].DeepCopyObject().(client.Object)
		desired.SetNamespace(d.Namespace)
		desired.SetLabels(map[string]string{fleet.LabelManaged: "true", labelCopiedFrom: o.bundle.Namespace})
		desired.SetOwnerReferences([]metav1.OwnerReference{owner})
		if err := c.writeCopy(ctx, desired); err != nil {
			return fmt.Errorf("copying %s: %w", kube.Name(resource.Kind, o.bundle.Namespace, desired.GetName()), err)
		}
	}
	return nil
}

// writeCopy creates or updates a copy. Deployments of several Bundles may own it. Their deletion
// deletes it.
func (c *Controller) writeCopy(ctx context.Context, desired client.Object) error {
	have := desired.DeepCopyObject().(client.Object)
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(desired), have)
	if apierrors.IsNotFound(err) {
		return c.Client.Create(ctx, desired, kube.FieldOwner)
	}
	if err != nil {
		return err
	}
	from := desired.GetLabels()[labelCopiedFrom]
	if have.GetLabels()[fleet.LabelManaged] != "true" || have.GetLabels()[labelCopiedFrom] != from {
		return fmt.Errorf("%s exists in the member namespace and is no copy from namespace %s: give the object another name",
			desired.GetName(), from)
	}
	owners := have.GetOwnerReferences()
	owner := desired.GetOwnerReferences()[0]
	if !slices.ContainsFunc(owners, func(is metav1.OwnerReference) bool { return is.UID == owner.UID }) {
		owners = append(owners, owner)
	}
	desired.SetOwnerReferences(owners)
	desired.SetUID(have.GetUID())
	desired.SetResourceVersion(have.GetResourceVersion())
	if sameCopy(have, desired) && len(have.GetOwnerReferences()) == len(owners) {
		return nil
	}
	if is, secret := have.(*corev1.Secret); !secret || is.Type == desired.(*corev1.Secret).Type {
		return c.Client.Update(ctx, desired, kube.FieldOwner)
	}
	if err := kube.DeleteByUID(ctx, c.Client, have); err != nil { // the type of a Secret cannot change
		return err
	}
	desired.SetUID("")
	desired.SetResourceVersion("")
	return c.Client.Create(ctx, desired, kube.FieldOwner)
}

// sameCopy reports whether two copies have the same content.
func sameCopy(a, b client.Object) bool {
	switch a := a.(type) {
	case *corev1.Secret:
		b := b.(*corev1.Secret)
		return a.Type == b.Type && equality.Semantic.DeepEqual(a.Data, b.Data)
	case *corev1.ConfigMap:
		b := b.(*corev1.ConfigMap)
		return equality.Semantic.DeepEqual(a.Data, b.Data) && equality.Semantic.DeepEqual(a.BinaryData, b.BinaryData)
	}
	return false
}

// dropCopies removes the copies no longer named by a deployment. Copies of other deployments lose
// only their owner.
func (c *Controller) dropCopies(ctx context.Context, d *fleet.BundleDeployment, named []fleet.DownstreamResource) error {
	for _, kind := range []string{kindSecret, kindConfigMap} {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := c.Live.List(ctx, &list, client.InNamespace(d.Namespace), client.HasLabels{labelCopiedFrom}); err != nil {
			return fmt.Errorf("listing the copies of kind %s in %s: %w", kind, d.Namespace, err)
		}
		for i := range list.Items {
			copied := &list.Items[i]
			copied.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
			kept := slices.Contains(named, fleet.DownstreamResource{Kind: kind, Name: copied.Name})
			if kept || copied.Labels[fleet.LabelManaged] != "true" {
				continue
			}
			if err := c.disown(ctx, copied, d.UID); err != nil {
				return err
			}
		}
	}
	return nil
}

// disown removes an owner from a copy, and deletes a copy without another owner.
func (c *Controller) disown(ctx context.Context, copied *metav1.PartialObjectMetadata, owner types.UID) error {
	before := copied.DeepCopy()
	copied.OwnerReferences = slices.DeleteFunc(copied.OwnerReferences, func(is metav1.OwnerReference) bool { return is.UID == owner })
	switch len(copied.OwnerReferences) {
	case len(before.OwnerReferences):
		return nil
	case 0:
		return kube.DeleteByUID(ctx, c.Client, copied)
	}
	return client.IgnoreNotFound(kube.Patch(ctx, c.Client, before, copied))
}

package placement

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/kube"
)

// A version of a selection is stored in a Secret in the hub's namespace, out of reach for tenants.
// It has no label, so the hub does not cache it.
const (
	versionType = "muster/placement-version"
	// labelVersionOf is the UID of the placement.
	labelVersionOf = "muster/version-of"
	// annotationVersionOf is the name of the placement, for people. The others hold the version's
	// index and hash.
	annotationVersionOf    = "muster/placement"
	annotationVersionIndex = "muster/version-index"
	annotationVersionHash  = "muster/version-hash"
	keyVersion             = "resources"
	// maxVersion limits the compressed bytes of a version: a Secret has 1 MiB.
	maxVersion = 1000 << 10
	// maxUnpacked limits its uncompressed bytes.
	maxUnpacked = 64 << 20
	// defaultHistory is the default of revisionHistoryLimit.
	defaultHistory = 10
)

// version is a stored version of a selection.
type version struct {
	index int
	hash  string
	// uid is the UID of its Secret.
	uid types.UID
}

func (v version) String() string { return strconv.Itoa(v.index) }

func versionName(of types.UID, index int) string { return fmt.Sprintf("version-%s-%d", of, index) }

// versionContent is the content of a version's Secret, compressed.
type versionContent struct {
	Objects []json.RawMessage `json:"objects"`
	// Wrapped are the objects from envelopes.
	Wrapped []wrapped `json:"wrapped,omitempty"`
}

type wrapped struct {
	Of   placement.ResourceIdentifier `json:"of"`
	From placement.EnvelopeIdentifier `json:"from"`
}

// versions returns the stored versions of a placement, the latest last. It reads the API server
// once.
func (c *Controller) versions(ctx context.Context, s genericPlacement) ([]version, error) {
	if known, ok := c.memory.versions(s.key, s.GetUID()); ok {
		return known, nil
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := c.Live.List(ctx, secrets, client.InNamespace(c.SystemNamespace), client.MatchingLabels{labelVersionOf: string(s.GetUID())})
	if err != nil {
		return nil, fmt.Errorf("listing the versions of %s: %w", s, err)
	}
	known := []version{}
	for _, secret := range secrets.Items {
		index, err := strconv.Atoi(secret.Annotations[annotationVersionIndex])
		if err == nil && secret.Name == versionName(s.GetUID(), index) {
			known = append(known, version{index, secret.Annotations[annotationVersionHash], secret.UID})
		}
	}
	slices.SortFunc(known, func(a, b version) int { return cmp.Compare(a.index, b.index) })
	c.memory.setVersions(s.key, s.GetUID(), known)
	return known, nil
}

// recordVersion stores the selection as a version.
func (c *Controller) recordVersion(ctx context.Context, s genericPlacement, v version, resources selection.Resources) error {
	packed, err := packVersion(resources)
	if err != nil {
		return fmt.Errorf("packing version %s of %s: %w", v, s, err)
	}
	if len(packed) > maxVersion {
		c.memory.setTooLarge(s.key, v.hash, fmt.Sprintf("the selected objects have %d KiB when compressed, and a version has room for %d: "+
			"select less, or divide the placement", len(packed)>>10, maxVersion>>10))
		return nil
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.SystemNamespace, Name: versionName(s.GetUID(), v.index),
			Labels: map[string]string{labelVersionOf: string(s.GetUID())},
			Annotations: map[string]string{
				annotationVersionOf: s.String(), annotationVersionIndex: v.String(), annotationVersionHash: v.hash,
			},
		},
		Immutable: new(true), Type: versionType, Data: map[string][]byte{keyVersion: packed},
	}
	if err := c.Client.Create(ctx, secret, kube.FieldOwner); err != nil {
		c.memory.forgetVersions(s.key) // it may exist, if the answer was lost
		return fmt.Errorf("keeping version %s of %s: %w", v, s, err)
	}
	v.uid = secret.UID
	known, err := c.versions(ctx, s)
	if err == nil {
		c.memory.setVersions(s.key, s.GetUID(), append(slices.Clone(known), v))
	}
	return err
}

func (c *Controller) deleteVersions(ctx context.Context, s genericPlacement, versions []version) error {
	if len(versions) == 0 {
		return nil
	}
	defer c.memory.forgetVersions(s.key)
	for _, v := range versions {
		secret := kube.CoreMetadata("Secret")
		secret.Namespace, secret.Name, secret.UID = c.SystemNamespace, versionName(s.GetUID(), v.index), v.uid
		if err := kube.DeleteByUID(ctx, c.Client, secret); err != nil {
			return fmt.Errorf("deleting version %s of %s: %w", v, s, err)
		}
	}
	return nil
}

// surplus returns the versions to delete: all but the last few, and except for versions in use by
// runs.
func surplus(versions []version, limit *int32, used map[string]bool) (old []version) {
	keep := defaultHistory
	if limit != nil {
		keep = int(*limit)
	}
	for _, v := range versions[:max(len(versions)-keep, 0)] {
		if !used[v.String()] {
			old = append(old, v)
		}
	}
	return old
}

// unusableError is the reason why a version cannot be used.
type unusableError string

func (e unusableError) Error() string { return string(e) }

// loadVersion returns the selection of a version, or an unusableError.
func (c *Controller) loadVersion(ctx context.Context, s genericPlacement, v version) (selection.Resources, error) {
	packed := c.memory.packed(s.key, v)
	if packed != nil {
		return unpackVersion(v, packed)
	}
	var secret corev1.Secret
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: c.SystemNamespace, Name: versionName(s.GetUID(), v.index)}, &secret)
	if apierrors.IsNotFound(err) || err == nil && secret.UID != v.uid {
		c.memory.forgetVersions(s.key)
		return selection.Resources{}, unusableError(fmt.Sprintf("version %s is not kept any more", v))
	} else if err != nil {
		return selection.Resources{}, fmt.Errorf("reading version %s of %s: %w", v, s, err)
	}
	resources, err := unpackVersion(v, secret.Data[keyVersion])
	if err == nil {
		err = checkVersion(v, resources)
	}
	if err == nil {
		c.memory.setPacked(s.key, v, secret.Data[keyVersion])
	}
	return resources, err
}

// checkVersion returns an error if the content of a version differs from its hash.
func checkVersion(v version, resources selection.Resources) error {
	parts, err := pack(resources.Objects, nil, maxManifests, true)
	if err == nil && hashParts(parts) != v.hash {
		err = unusableError(fmt.Sprintf("the content of version %s was changed since it was stored", v))
	}
	return err
}

func packVersion(resources selection.Resources) ([]byte, error) {
	content := versionContent{}
	for _, o := range resources.Objects {
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		content.Objects = append(content.Objects, text)
	}
	for of, from := range resources.Envelopes {
		content.Wrapped = append(content.Wrapped, wrapped{of, from})
	}
	slices.SortFunc(content.Wrapped, func(a, b wrapped) int { return cmp.Compare(nameOf(a.Of), nameOf(b.Of)) })
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return delivery.Gzip(text)
}

func unpackVersion(v version, packed []byte) (selection.Resources, error) {
	var content versionContent
	text, err := delivery.Gunzip(packed, maxUnpacked)
	if err == nil {
		err = json.Unmarshal(text, &content)
	}
	if err != nil {
		return selection.Resources{}, unusableError(fmt.Sprintf("version %s is damaged: %v", v, err))
	}
	resources := selection.Resources{Envelopes: map[placement.ResourceIdentifier]placement.EnvelopeIdentifier{}}
	for _, text := range content.Objects {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			return selection.Resources{}, unusableError(fmt.Sprintf("version %s is damaged: %v", v, err))
		}
		resources.Objects = append(resources.Objects, o)
	}
	for _, w := range content.Wrapped {
		resources.Envelopes[w.Of] = w.From
	}
	return resources, nil
}

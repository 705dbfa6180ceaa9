package release

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/manifest"
)

// discoveryPause is the pause between two look-ups of a replaced definition's versions.
const discoveryPause = time.Second / 10

// crds returns the setting for the directory crds/ of the chart.
func (r Request) crds() string { return cmp.Or(r.helm().CRDs, fleet.CRDsCreate) }

// bringer brings the definitions in the directory crds/ of a chart to the member, before the
// templates are rendered. Helm itself would overwrite existing ones of any owner at an
// installation, and leave them alone in an upgrade.
type bringer struct {
	// cluster has the agent's rights, acting the rights of the deployment's account.
	cluster, acting *Cluster
	request         Request
	// releases are the release, and the releases with names still possible in its definitions.
	releases []ID
	done     []brought
}

// brought is a definition after its step.
type brought struct {
	definition
	step crdStep
	// digest is the digest of the desired content on the member.
	digest string
}

// bringCRDs brings the definitions of a request. It changes none if one of them is refused.
func (c *Cluster) bringCRDs(ctx context.Context, acting *Cluster, r Request, names []ID) (*bringer, error) {
	b := &bringer{cluster: c, acting: acting, request: r, releases: slices.Clone(names)}
	if r.Before != nil {
		b.releases = append(b.releases, r.Before.ID())
	}
	for _, s := range r.Leaving {
		b.releases = append(b.releases, s.ID())
	}
	objects, err := crdsOf(r)
	if err != nil {
		return nil, err
	}
	if r.crds() != fleet.CRDsSkip {
		if err := c.refuseNamespaces(ctx, r, objects); err != nil { // crds/ may hold any kind
			return nil, err
		}
	}
	var steps []brought
	for _, object := range objects {
		one, err := b.plan(ctx, object)
		if err != nil {
			return nil, err
		}
		steps = append(steps, one)
	}
	for _, one := range steps {
		if one, err = b.carryOut(ctx, one); err != nil {
			return nil, err
		}
		b.done = append(b.done, one)
	}
	return b, b.await(ctx)
}

// crdsOf returns the objects in the directories crds/ of the chart and of enabled subcharts. It
// refuses them if the Bundle is confined to a namespace.
func crdsOf(r Request) (objects []*unstructured.Unstructured, err error) {
	for _, file := range r.Chart.CRDObjects() {
		parsed, err := parse(file.File.Data)
		if err != nil {
			return nil, fmt.Errorf("reading %s of the chart: %w", file.Filename, err)
		}
		if target := r.Options.TargetNamespace; target != "" && r.crds() != fleet.CRDsSkip {
			name := "a CustomResourceDefinition"
			if len(parsed) > 0 {
				name = parsed[0].GetKind() + " " + parsed[0].GetName()
			}
			return nil, fmt.Errorf("%s is cluster-scoped, but spec.options.namespace confines the Bundle to namespace %s: set helm.crds to Skip "+
				"and have %s installed otherwise, take the file out of the chart, or use defaultNamespace instead", name, target, file.Filename)
		}
		for _, object := range parsed {
			if isCRD(object) && object.GroupVersionKind().Version != "v1" {
				return nil, fmt.Errorf("CustomResourceDefinition %s in %s of the chart is of %s, which Kubernetes no longer serves: write it as "+
					"apiextensions.k8s.io/v1", object.GetName(), file.Filename, object.GetAPIVersion())
			}
		}
		objects = append(objects, parsed...)
	}
	return objects, normalize(objects)
}

// plan observes a definition, and decides its step. The agent reads it, because the account of the
// Bundle may not need to.
func (b *bringer) plan(ctx context.Context, wanted *unstructured.Unstructured) (brought, error) {
	one := brought{definition: definition{wanted: wanted}}
	if b.request.crds() == fleet.CRDsSkip {
		one.step = crdLeft
		return one, nil
	}
	objects, err := b.objects(ctx, b.cluster, wanted)
	if err != nil {
		return one, err
	}
	found, err := objects.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return one, fmt.Errorf("reading %s %s of crds/: %w", wanted.GetKind(), wanted.GetName(), err)
	case !isCRD(wanted): // as with Helm, it is not upgraded
		one.found, one.step = found, crdLeft
		return one, nil
	default:
		one.found = found
		if one.holder, err = holderOf(found, b.releases); err != nil {
			return one, err
		}
		if one.differs, err = differ(wanted, found); err != nil {
			return one, err
		}
	}
	one.step, err = decideCRD(one.definition, b.request.crds(), b.request.ID(), b.request.takesOver())
	return one, err
}

// objects returns the client for an object in crds/.
func (b *bringer) objects(ctx context.Context, as *Cluster, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	if isCRD(object) {
		return as.Dynamic.Resource(crdResource), nil
	}
	mapping, served, err := b.cluster.Find(ctx, object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if !served {
		kind := object.GroupVersionKind()
		return nil, fmt.Errorf("%s %s of crds/: %w", kind.Kind, object.GetName(),
			&meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}})
	}
	return at(as, mapping, Summary{Namespace: b.request.Namespace}, object), nil
}

// carryOut carries out a step. If another client wrote the definition meanwhile, it decides again.
func (b *bringer) carryOut(ctx context.Context, one brought) (brought, error) {
	again := false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		if again {
			if one, err = b.plan(ctx, one.wanted); err != nil {
				return err
			}
		}
		again = true
		return b.write(ctx, &one)
	})
	if apierrors.IsForbidden(err) {
		return one, fmt.Errorf("%s %s of crds/ cannot be %s: %w: grant the account of the Bundle create and patch, or set helm.crds to Skip",
			one.wanted.GetKind(), one.wanted.GetName(), one.step, err)
	}
	if conflict := (*CRDConflict)(nil); err != nil && !errors.As(err, &conflict) {
		return one, fmt.Errorf("%s %s of crds/ cannot be %s: %w", one.wanted.GetKind(), one.wanted.GetName(), cmp.Or(one.step, crdReplaced), err)
	}
	if err == nil && isCRD(one.wanted) && one.digest == "" && b.request.crds() != fleet.CRDsSkip {
		one.digest, err = digestOfCRD(one.wanted, hasCertificate(one.wanted))
	}
	return one, err
}

// write writes a definition, unless it is left. The version from the read protects concurrent
// changes by other clients.
func (b *bringer) write(ctx context.Context, one *brought) error {
	if one.step == crdLeft {
		return nil
	}
	objects, err := b.objects(ctx, b.acting, one.wanted)
	if err != nil {
		return err
	}
	if one.step == crdMarked {
		return b.markCRD(ctx, objects, one.found)
	}
	desired := one.wanted.DeepCopy()
	unstructured.RemoveNestedField(desired.Object, "status")
	if isCRD(desired) {
		Mark(desired, b.request.ID())
		put(desired.GetAnnotations(), kube.ResourcePolicyAnno, kube.KeepPolicy, desired.SetAnnotations)
	}
	if one.found != nil {
		manifest.Yield(desired, one.found, FieldManager, nil, manifest.Ignored{})
		desired.SetUID(one.found.GetUID())
		desired.SetResourceVersion(one.found.GetResourceVersion())
	}
	text, err := json.Marshal(desired)
	if err != nil {
		return err
	}
	// A definition created concurrently by another client is not taken over.
	written, err := objects.Patch(ctx, desired.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		FieldManager: FieldManager, Force: new(one.found != nil),
	})
	if err != nil || !isCRD(desired) {
		return err
	}
	// An older API server may leave out fields.
	one.digest, err = digestOfCRD(written, hasCertificate(one.wanted))
	return err
}

// markCRD marks a definition as the release's.
func (b *bringer) markCRD(ctx context.Context, objects dynamic.ResourceInterface, found *unstructured.Unstructured) error {
	annotations := marked(nil, b.request.ID())
	annotations[kube.ResourcePolicyAnno] = kube.KeepPolicy
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": found.GetUID(), "resourceVersion": found.GetResourceVersion(),
		"labels": map[string]string{managedBy: helmItself}, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, found.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// await waits until the API server serves all created and replaced definitions.
func (b *bringer) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, establishTimeout)
	defer cancel()
	failures := make([]error, len(b.done))
	var waiting sync.WaitGroup
	changed := false
	for i, one := range b.done {
		if isCRD(one.wanted) && (one.step == crdCreated || one.step == crdReplaced) {
			changed = true
			waiting.Go(func() {
				if failures[i] = b.cluster.awaitCRD(ctx, one.wanted.GetName()); failures[i] == nil {
					failures[i] = b.cluster.awaitVersions(ctx, one.wanted)
				}
			})
		}
	}
	waiting.Wait()
	if changed {
		b.cluster.Mapper.Reset()
	}
	return errors.Join(failures...)
}

// awaitVersions waits until all versions of a definition are served. No event reports that.
func (c *Cluster) awaitVersions(ctx context.Context, wanted *unstructured.Unstructured) error {
	spec, err := specOf(wanted)
	if err != nil {
		return err
	}
	for _, version := range spec.Versions {
		if !version.Served {
			continue
		}
		name := spec.Group + "/" + version.Name
		isKind := func(r metav1.APIResource) bool { return r.Kind == spec.Names.Kind }
		err := wait.PollUntilContextCancel(ctx, discoveryPause, true, func(context.Context) (bool, error) {
			resources, err := c.live.ServerResourcesForGroupVersion(name)
			return err == nil && slices.ContainsFunc(resources.APIResources, isKind), nil
		})
		if err != nil {
			return fmt.Errorf("%s of CustomResourceDefinition %s is not served after %s", name, wanted.GetName(), establishTimeout)
		}
	}
	return nil
}

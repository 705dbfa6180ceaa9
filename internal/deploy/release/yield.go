package release

import (
	"fmt"
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/muster-fleet/muster/internal/delivery/manifest"
	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// yield makes an upgrade keep the fields owned by others, see manifest.Rows. It also takes over the
// data of Secrets with stringData in the last revision. The history keeps the manifests of the
// author.
func (u *upgradeClient) yield(originals, targets kube.ResourceList) error {
	for _, info := range targets {
		wanted, ok := info.Object.(*unstructured.Unstructured)
		texts := hadTexts(originals.Get(info))
		if !ok || !texts && !manifest.MayYield(wanted) {
			continue
		}
		found, err := clientOf(u.acting, info).Get(u.ctx, info.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s before it is upgraded: %w", info.ObjectName(), err)
		}
		if texts {
			if err := u.takeTexts(info, found); err != nil {
				return err
			}
			continue
		}
		scaler, err := u.scalerOf(info, wanted, found, originals, targets)
		if err != nil {
			return err
		}
		left := wanted.DeepCopy()
		manifest.Yield(left, found, FieldManager, scaler, manifest.Ignored{})
		info.Object = left
	}
	return nil
}

// hadTexts reports whether an object of the last revision is a Secret with stringData, as earlier
// versions applied it.
func hadTexts(original *resource.Info) bool {
	if original == nil || original.Mapping.GroupVersionKind.Kind != "Secret" {
		return false
	}
	was, ok := original.Object.(*unstructured.Unstructured)
	return ok && was.Object["stringData"] != nil
}

// takeTexts makes this program the owner of a Secret's data applied as stringData. A dropped key is
// then removed. The patch concerns only the entry of this program.
func (u *upgradeClient) takeTexts(info *resource.Info, secret *unstructured.Unstructured) error {
	patch, err := applied.TextsPatch(secret, FieldManager)
	if err == nil && patch != nil {
		_, err = clientOf(u.acting, info).Patch(u.ctx, info.Name, types.JSONPatchType, patch,
			metav1.PatchOptions{FieldManager: FieldManager})
	}
	if err != nil {
		return fmt.Errorf("taking over the keys of %s: %w", info.ObjectName(), err)
	}
	return nil
}

// scalerOf returns the bounds of the object's autoscaler after the upgrade.
func (u *upgradeClient) scalerOf(info *resource.Info, wanted, found *unstructured.Unstructured,
	originals, targets kube.ResourceList) (*manifest.Bounds, error) {
	if !manifest.Rescaled(wanted, found) {
		return nil, nil
	}
	live, err := applied.Scalers(u.ctx, u.after.cluster.Dynamic, info.Namespace)
	if err != nil {
		return nil, err
	}
	within := func(list kube.ResourceList) (scalers []*unstructured.Unstructured) {
		for _, one := range list {
			object, ok := one.Object.(*unstructured.Unstructured)
			if ok && one.Namespace == info.Namespace && one.Mapping.GroupVersionKind.GroupKind() == manifest.ScalerKind {
				scalers = append(scalers, object)
			}
		}
		return scalers
	}
	dropped := within(originals.Difference(targets))
	after := manifest.Scalers(live, within(targets), func(scaler *unstructured.Unstructured) bool {
		return slices.ContainsFunc(dropped, func(d *unstructured.Unstructured) bool { return d.GetName() == scaler.GetName() })
	})
	return manifest.BoundsOf(after, wanted), nil
}

package membercluster

import (
	"context"
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// verified holds the versions of a member's Role and RoleBinding at the last read that found them
// correct. The hub does not read them again while both stay unchanged.
type verified struct {
	wanted        string
	role, binding string
}

// differingRights returns the Role and the RoleBinding of the member if they are wrong. Without a
// usable identity, it deletes the RoleBinding.
func (c *Controller) differingRights(ctx context.Context, o observed) (differ []client.Object, err error) {
	rights := membernamespace.Rights{Member: o.Member, Native: o.native(), Exchanged: o.accountFits()}
	if o.usable() {
		rights.Identity = &o.identity
	}
	role, err := rights.Role()
	if err != nil {
		return nil, err
	}
	binding := rights.Binding()
	before, _ := c.verified.Load(o.Namespace)
	seen, err := c.cachedRights(ctx, role, binding)
	if err != nil || before == seen && rights.Identity != nil {
		return nil, err
	}
	c.verified.Delete(o.Namespace)
	var haveRole rbacv1.Role
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(role), &haveRole); client.IgnoreNotFound(err) != nil {
		return nil, err
	} else if !equality.Semantic.DeepEqual(haveRole.Rules, role.Rules) || !labelled(&haveRole) {
		differ = append(differ, role)
	}
	if rights.Identity == nil {
		return differ, kube.Delete(ctx, c.Client, binding)
	}
	var haveBinding rbacv1.RoleBinding
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(binding), &haveBinding); client.IgnoreNotFound(err) != nil {
		return nil, err
	} else if haveBinding.UID == "" || !equality.Semantic.DeepEqual(haveBinding.Subjects, binding.Subjects) || !labelled(&haveBinding) {
		differ = append(differ, binding)
		return differ, c.auditRights(ctx, o, &haveBinding)
	}
	if len(differ) == 0 {
		c.verified.Store(o.Namespace, verified{seen.wanted, haveRole.ResourceVersion, haveBinding.ResourceVersion})
	}
	return differ, nil
}

// cachedRights returns the versions of a member's Role and RoleBinding in the cache, which holds
// only their metadata.
func (c *Controller) cachedRights(ctx context.Context, role *rbacv1.Role, binding *rbacv1.RoleBinding) (verified, error) {
	wanted, err := json.Marshal([]any{role.Rules, binding.Subjects})
	if err != nil {
		return verified{}, fmt.Errorf("comparing rights: %w", err)
	}
	var versions [2]string
	for i, object := range []client.Object{role, binding} {
		have := kube.MetadataOf(c.Client.Scheme())(object)
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), have); err == nil {
			versions[i] = have.GetResourceVersion()
		} else if !apierrors.IsNotFound(err) {
			return verified{}, err
		}
	}
	return verified{string(wanted), versions[0], versions[1]}, nil
}

// labelled reports whether the cache can hold an object; objects created by KubeFleet's hub lack
// the label.
func labelled(o client.Object) bool { return o.GetLabels()[fleet.LabelManaged] == "true" }

package membercluster

import (
	"context"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// rightsLag bounds the wait for the cache to show rights or an account written by this process.
// After an earlier deletion, they are restored at the end of the wait.
const rightsLag = 2 * time.Second

// rights are the Role and the RoleBinding of a member.
type rights struct {
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
}

// content returns the content of correct rights.
func (r rights) content() any { return []any{r.role.Rules, r.binding.Subjects} }

// verified is the last known state of a member's rights, and the rights of that state.
type verified struct {
	kube.Verified
	given membernamespace.Rights
}

// rightsOf returns the rights of the member's agent.
func rightsOf(o observed) membernamespace.Rights {
	given := membernamespace.Rights{Member: o.Member, Native: o.native(), Exchanged: o.bindsAccount(), Quarantined: o.Quarantined}
	if identity := o.identity; o.usable() {
		given.Identity = &identity
	}
	return given
}

// objectsOf returns the Role and the RoleBinding of rights.
func objectsOf(given membernamespace.Rights) (rights, error) {
	role, err := given.Role()
	return rights{role, given.Binding()}, err
}

// correctRights writes the Role and the RoleBinding of the member if they are wrong. Without a
// usable identity, it deletes the RoleBinding. It reads them only if the cache differs from the
// last write of this process, and waits for its own writes to appear there.
func (c *Controller) correctRights(ctx context.Context, o *observed) error {
	given := rightsOf(*o)
	wanted, err := objectsOf(given)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Name: o.Namespace}
	seen, shown, err := kube.Shown(ctx, c.Client, wanted.content(), wanted.role, wanted.binding)
	if err != nil {
		return err
	}
	lastRights, _ := c.verified.Take(o.Namespace)
	stays := given.Identity != nil && o.Deleted.IsZero()
	if stays && lastRights.SameDesired(seen) {
		if o.rightsLag = c.written.Await(key, shown...); o.rightsLag > 0 || lastRights.Verified == seen {
			c.verified.Set(o.Namespace, lastRights)
			return nil
		}
	}
	have := rights{&rbacv1.Role{}, &rbacv1.RoleBinding{}}
	switch {
	case o.NamespaceNew: // there are none
	case stays && lastRights.SameObjects(seen) && len(shown) == 2:
		have, err = lastRights.objects(shown)
	default:
		have, err = c.haveRights(ctx, wanted)
	}
	if err == nil {
		have, err = c.writeRights(ctx, *o, have, wanted)
	}
	if err == nil && given.Identity != nil {
		c.verified.Set(o.Namespace, verified{seen.At(have.role, have.binding), given})
	}
	return err
}

// objects returns the Role and the RoleBinding as this process knows them, without a read: the
// cache shows the same versions.
func (v verified) objects(shown []client.Object) (rights, error) {
	have, err := objectsOf(v.given)
	if err == nil {
		have.role.UID, have.role.ResourceVersion = shown[0].GetUID(), shown[0].GetResourceVersion()
		have.binding.UID, have.binding.ResourceVersion = shown[1].GetUID(), shown[1].GetResourceVersion()
	}
	return have, err
}

// haveRights reads the Role and the RoleBinding of the member.
func (c *Controller) haveRights(ctx context.Context, wanted rights) (rights, error) {
	have := rights{&rbacv1.Role{}, &rbacv1.RoleBinding{}}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(wanted.role), have.role); client.IgnoreNotFound(err) != nil {
		return have, err
	}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(wanted.binding), have.binding)
	return have, client.IgnoreNotFound(err)
}

// writeRights writes the wanted rights over others, and returns the rights after that. It deletes a
// RoleBinding without subjects.
func (c *Controller) writeRights(ctx context.Context, o observed, have, wanted rights) (rights, error) {
	key := types.NamespacedName{Name: o.Namespace}
	if !equality.Semantic.DeepEqual(have.role.Rules, wanted.role.Rules) || !labelled(have.role) {
		if err := kube.EnsureOver(ctx, c.Client, have.role, wanted.role); err != nil {
			return have, err
		}
		have.role = wanted.role
		c.written.Expect(key, have.role)
	}
	if len(wanted.binding.Subjects) == 0 {
		return have, kube.Delete(ctx, c.Client, wanted.binding)
	}
	if have.binding.UID == "" || !equality.Semantic.DeepEqual(have.binding.Subjects, wanted.binding.Subjects) || !labelled(have.binding) {
		if err := c.auditRights(ctx, o, have.binding); err != nil {
			return have, err
		}
		if err := kube.EnsureOver(ctx, c.Client, have.binding, wanted.binding); err != nil {
			return have, err
		}
		have.binding = wanted.binding
		c.written.Expect(key, have.binding)
	}
	return have, nil
}

// labelled reports whether the cache can hold an object; objects created by KubeFleet's hub lack
// the label.
func labelled(o client.Object) bool { return o.GetLabels()[fleet.LabelManaged] == "true" }

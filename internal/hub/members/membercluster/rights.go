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

// correctRights writes the Role and the RoleBinding of the member if they are wrong. Without a
// usable identity, it deletes the RoleBinding. It reads them only if the cache differs from the
// last write of this process, and waits for its own writes to appear there.
func (c *Controller) correctRights(ctx context.Context, o *observed) error {
	given := membernamespace.Rights{Member: o.Member, Native: o.native(), Exchanged: o.accountFits(), Quarantined: o.Quarantined}
	if o.usable() {
		given.Identity = &o.identity
	}
	role, err := given.Role()
	if err != nil {
		return err
	}
	wanted, key := rights{role, given.Binding()}, types.NamespacedName{Name: o.Namespace}
	seen, shown, err := kube.Shown(ctx, c.Client, wanted.content(), role, wanted.binding)
	if err != nil {
		return err
	}
	if known, _ := c.verified.Take(o.Namespace); given.Identity != nil && o.Deleted.IsZero() && known.SameDesired(seen) {
		if o.rightsLag = c.written.Await(key, shown...); o.rightsLag > 0 || known == seen {
			c.verified.Set(o.Namespace, known)
			return nil
		}
	}
	have, err := c.haveRights(ctx, *o, wanted)
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(have.role.Rules, role.Rules) || !labelled(have.role) {
		if err := kube.EnsureOver(ctx, c.Client, have.role, role); err != nil {
			return err
		}
		have.role = role
		c.written.Expect(key, role)
	}
	if given.Identity == nil {
		return kube.Delete(ctx, c.Client, wanted.binding)
	}
	if have.binding.UID == "" || !equality.Semantic.DeepEqual(have.binding.Subjects, wanted.binding.Subjects) || !labelled(have.binding) {
		if err := c.auditRights(ctx, *o, have.binding); err != nil {
			return err
		}
		if err := kube.EnsureOver(ctx, c.Client, have.binding, wanted.binding); err != nil {
			return err
		}
		have.binding = wanted.binding
		c.written.Expect(key, wanted.binding)
	}
	c.verified.Set(o.Namespace, seen.At(have.role, have.binding))
	return nil
}

// haveRights reads the Role and the RoleBinding of the member. In a new namespace there are none.
func (c *Controller) haveRights(ctx context.Context, o observed, wanted rights) (rights, error) {
	have := rights{&rbacv1.Role{}, &rbacv1.RoleBinding{}}
	if o.NamespaceNew {
		return have, nil
	}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(wanted.role), have.role); client.IgnoreNotFound(err) != nil {
		return have, err
	}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(wanted.binding), have.binding)
	return have, client.IgnoreNotFound(err)
}

// labelled reports whether the cache can hold an object; objects created by KubeFleet's hub lack
// the label.
func labelled(o client.Object) bool { return o.GetLabels()[fleet.LabelManaged] == "true" }

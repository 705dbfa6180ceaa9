package cli

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/uninstall"
)

// errLeftovers is the error of a command that found leftovers and did not remove them.
var errLeftovers = fmt.Errorf("%w: leftovers of Muster exist; --remove removes them", errNotWell)

// findLeftovers lists the leftovers on each cluster, and removes them on request.
func (d *doctor) findLeftovers(ctx context.Context) error {
	left := false
	if d.hubContext == "" || *d.Context != "" {
		some, err := d.leftoversOn(ctx, d.access)
		if err != nil {
			return err
		}
		left = some
	}
	if d.hubContext != "" {
		some, err := d.leftoversOn(ctx, d.in(d.hubContext, "the hub"))
		if err != nil {
			return err
		}
		left = left || some
	}
	if left {
		return errLeftovers
	}
	return nil
}

// leftoversOn lists the leftovers on one cluster, and removes them on request. It reports whether
// any are left.
func (d *doctor) leftoversOn(ctx context.Context, a *access) (left bool, err error) {
	checked, err := a.checked()
	if err != nil {
		return false, err
	}
	connection, err := kubeclient.Connect(checked.config)
	if err != nil {
		return false, err
	}
	api, err := connection.REST(corev1.SchemeGroupVersion)
	if err != nil {
		return false, err
	}
	cluster := uninstall.New(api)
	found, err := cluster.Leftovers(ctx)
	if err != nil {
		return false, fmt.Errorf("looking for leftovers on %s: %w", a.contextName(), err)
	}
	p := newProse(d.Out)
	p.line("%s", a.contextName())
	d.print(&p, found)
	if len(found.Found) == 0 || !d.remove || p.err != nil {
		return len(found.Found) > 0, p.err
	}
	if d.dryRun {
		p.line("  Nothing is removed, because of --dry-run.")
		return false, p.err
	}
	if !d.yes {
		c := &changer{IOStreams: d.IOStreams, access: d.access}
		question := fmt.Sprintf("Remove these %d objects from %s?", len(found.Found), a.contextName())
		if err := c.askFor(ctx, question, "The removal", "use --yes to remove the objects above"); err != nil {
			return true, err
		}
	}
	return d.removeLeftovers(ctx, &p, cluster, found)
}

// print lists leftovers with their proofs, and all other objects with the cause why they stay.
func (*doctor) print(p *prose, found *uninstall.Leftovers) {
	if len(found.Found) == 0 {
		p.line("  No leftovers found.")
	}
	for _, l := range found.Found {
		p.paragraph(4, "  leftover   %s: %s", l.Object, l.Proof)
	}
	for _, object := range found.Unproved {
		p.paragraph(4, "  unproved   %s: it has a name of Muster's; to remove it: %s", object, object.DeleteCommand())
	}
	for _, sentence := range found.Stays {
		p.paragraph(4, "  stays      %s", sentence)
	}
}

// removeLeftovers removes leftovers, continues after errors, and reports whether any are left.
func (*doctor) removeLeftovers(ctx context.Context, p *prose, cluster uninstall.Cluster, found *uninstall.Leftovers) (bool, error) {
	var failed []error
	for at, l := range found.Found {
		if err := cluster.RemoveLeftover(ctx, l); err != nil {
			failed = append(failed, err)
			continue
		}
		p.line("  %s is removed; %d left.", l.Object, len(found.Found)-at-1)
	}
	return len(failed) > 0, errors.Join(append(failed, p.err)...)
}

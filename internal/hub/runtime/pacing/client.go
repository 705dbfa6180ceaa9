package pacing

import (
	"context"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// paced is a client whose writes of deliveries wait for their turn. Their statuses and all other
// objects do not wait.
type paced struct {
	client.Client
	pacer *Pacer
}

// NewClient returns a client that paces the writes of BundleDeployments and Works. It is a
// client.NewClientFunc.
func (p *Pacer) NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	direct, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return &paced{direct, p}, nil
}

// Watch ends deliveries with the reports of their members. A report leaves the generation of a
// BundleDeployment or Work.
func (p *Pacer) Watch(ctx context.Context, from cache.Cache) error {
	for _, kind := range []client.Object{&fleet.BundleDeployment{}, &placement.Work{}} {
		informer, err := from.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			if o := after.(client.Object); o.GetGeneration() == before.(client.Object).GetGeneration() {
				k, _ := keyOf(o)
				p.reported(k)
			}
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// keyOf returns the key of a delivery, and whether an object is one.
func keyOf(o client.Object) (k key, isDelivery bool) {
	switch o.(type) {
	case *fleet.BundleDeployment:
		return key{"BundleDeployment", client.ObjectKeyFromObject(o)}, true
	case *placement.Work:
		return key{"Work", client.ObjectKeyFromObject(o)}, true
	}
	return key{}, false
}

func (c *paced) write(ctx context.Context, o client.Object, do func() error) error {
	k, isDelivery := keyOf(o)
	if !isDelivery {
		return do()
	}
	return c.pacer.write(ctx, k, do)
}

// Create implements client.Writer.
func (c *paced) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return c.write(ctx, o, func() error { return c.Client.Create(ctx, o, options...) })
}

// Update implements client.Writer.
func (c *paced) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return c.write(ctx, o, func() error { return c.Client.Update(ctx, o, options...) })
}

// Patch implements client.Writer.
func (c *paced) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.write(ctx, o, func() error { return c.Client.Patch(ctx, o, patch, options...) })
}

// Delete implements client.Writer.
func (c *paced) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return c.write(ctx, o, func() error { return c.Client.Delete(ctx, o, options...) })
}

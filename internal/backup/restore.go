package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/fleet/standby"
)

// AnnotationRestored is the annotation with the ID of the backup on a restored object.
const AnnotationRestored = "muster/restored-from"

// fieldManager is the field manager of restored fields.
const fieldManager = standby.Manager

// RestoreOptions are the settings of a restore.
type RestoreOptions struct {
	Identities []age.Identity
	// Merge permits a restore into a hub with members of its own.
	Merge bool
	// Idle returns an error while a hub runs on the cluster. A running hub would act on a part of the
	// fleet.
	Idle func(context.Context) error
	// Progress prints a completed step; may be nil.
	Progress func(text string)
	// Now defaults to the current time.
	Now func() time.Time
}

// Restored describes a restore.
type Restored struct {
	Header
	// Created, Present and LeftOut count objects. Present counts the existing ones.
	Created, Present, LeftOut int
	// Paused counts paused placements: they change nothing until a user resumes them.
	Paused int
	// Term is the term of the restored hub; 0 if it keeps its own key.
	Term int64
	// Notes has a sentence about each object with a difference to the backup, with the cause.
	Notes []string
	// Failed has the error of each object not created.
	Failed []string
}

// Opener opens the file; a restore reads it several times.
type Opener func() (io.ReadCloser, error)

// restoring is one run of a restore.
type restoring struct {
	RestoreOptions
	config *rest.Config
	open   Opener
	hub    dynamic.Interface
	// names holds the names of existing objects, by resource.
	names map[schema.GroupVersionResource]map[string]bool

	mu sync.Mutex // guards the fields below
	// authors holds one client for each author of placements, overrides and envelopes.
	authors map[string]dynamic.Interface
	// resources maps the kinds of a backup to their served resources.
	resources map[schema.GroupVersionKind]schema.GroupVersionResource
	// uids maps the UIDs in the file to the UIDs on this cluster.
	uids map[types.UID]types.UID
	// agentKeys has the public keys of agents, by the UIDs of their MemberClusters in the file.
	agentKeys map[types.UID]string
	// workspaces has the namespaces of restored Clusters.
	workspaces map[string]bool
	done       Restored
}

// Restore creates the objects of a file on the configured cluster. Callers may repeat it after a
// failure. It verifies the whole file before it writes anything.
func Restore(ctx context.Context, config *rest.Config, open Opener, o RestoreOptions) (Restored, error) {
	config = unlimited(config)
	hub, err := dynamic.NewForConfig(config)
	if err != nil {
		return Restored{}, fmt.Errorf("connecting to the hub: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &restoring{
		RestoreOptions: o, config: config, open: open, hub: hub, authors: map[string]dynamic.Interface{},
		resources: map[schema.GroupVersionKind]schema.GroupVersionResource{}, uids: map[types.UID]types.UID{},
		names: map[schema.GroupVersionResource]map[string]bool{}, workspaces: map[string]bool{}, agentKeys: map[types.UID]string{},
	}
	missing, err := r.verify(ctx)
	if err != nil {
		return r.done, err
	}
	if err := r.ownMembers(ctx); err != nil {
		return r.done, err
	}
	if missing > 0 && o.Idle != nil {
		if err := o.Idle(ctx); err != nil {
			return r.done, err
		}
	}
	if missing > 0 {
		if err := r.restoreIdentity(ctx); err != nil {
			return r.done, err
		}
	}
	for _, core := range []bool{true, false} {
		if err := r.pass(ctx, core); err != nil {
			return r.done, err
		}
	}
	if err := r.admitStandby(ctx); err != nil {
		return r.done, err
	}
	if len(r.done.Failed) > 0 {
		return r.done, fmt.Errorf("%d objects could not be restored: remove the causes, and run the command again", len(r.done.Failed))
	}
	return r.done, nil
}

// each calls a function for one object of the file after the other.
func (r *restoring) each(each func(schema.GroupVersionResource, *unstructured.Unstructured) error) error {
	file, err := r.open()
	if err != nil {
		return fmt.Errorf("opening the backup: %w", err)
	}
	defer file.Close() //nolint:errcheck // it is read only
	r.done.Header, err = Read(file, r.Identities, func(_ Header, o *unstructured.Unstructured) error {
		resource, found := r.resources[o.GroupVersionKind()]
		if !found && r.done.ID != "" {
			return fmt.Errorf("the cluster does not serve the kind %s, or no backup has this kind: install a hub of the same version with "+
				"muster init, and check who wrote the file", o.GroupVersionKind().GroupKind())
		}
		return each(resource, o)
	})
	return err
}

// verify reads the whole file, and looks for its kinds on the cluster. It returns the number of
// objects to create.
func (r *restoring) verify(ctx context.Context) (missing int, err error) {
	if err := r.each(func(schema.GroupVersionResource, *unstructured.Unstructured) error { return nil }); err != nil {
		return 0, err
	}
	if err := r.serve(); err != nil {
		return 0, err
	}
	err = r.each(func(resource schema.GroupVersionResource, o *unstructured.Unstructured) error {
		if resource == reports {
			r.noteAgentKey(o)
		}
		if r.skips(resource, o) {
			return nil
		}
		if r.names[resource] == nil {
			if err := r.look(ctx, resource); err != nil {
				return err
			}
		}
		if !r.names[resource][keyOf(o)] {
			missing++
		}
		return nil
	})
	return missing, err
}

// look lists the names of the objects of a kind.
func (r *restoring) look(ctx context.Context, resource schema.GroupVersionResource) error {
	lists, err := metadata.NewForConfig(r.config)
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	r.names[resource] = map[string]bool{}
	for options := (metav1.ListOptions{Limit: 10 * page}); ; {
		list, err := lists.Resource(resource).List(ctx, options)
		if err != nil {
			return fmt.Errorf("looking for %s: %w", resource.GroupResource(), err)
		}
		for i := range list.Items {
			r.names[resource][keyOf(&list.Items[i])] = true
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// unlimited leaves the limit of requests to the API server's own priority and fairness.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// serve finds the served resources of all kinds of a backup. A restore refuses a file with other
// kinds, because every holder of the public key can write a file.
func (r *restoring) serve() error {
	api, err := discovery.NewDiscoveryClientForConfig(r.config)
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	for _, kind := range append(kinds(), namespaces, accounts, secrets) {
		list, err := api.ServerResourcesForGroupVersion(kind.GroupVersion().String())
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("reading the kinds of the hub in %s: %w", kind.GroupVersion(), err)
		}
		for _, served := range list.APIResources {
			if served.Name == kind.Resource {
				r.resources[kind.GroupVersion().WithKind(served.Kind)] = kind
			}
		}
	}
	return nil
}

// ownMembers returns an error for a hub with members of its own, not restored from this file.
func (r *restoring) ownMembers(ctx context.Context) error {
	if r.Merge {
		return nil
	}
	var own []string
	for _, kind := range []schema.GroupVersionResource{clusters, members} {
		list, err := r.hub.Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("looking for members of the hub: %w", err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.GetAnnotations()[AnnotationRestored] != r.done.ID && !isHubItself(kind, o) {
				own = append(own, nameOf(o))
			}
		}
	}
	if len(own) == 0 {
		return nil
	}
	return fmt.Errorf("the hub has %d members of its own, such as %s: restore into an empty hub, or use --merge to keep them and add the "+
		"members of the backup", len(own), own[0])
}

// pass creates the objects of the core kinds of Kubernetes, or of all other kinds. It creates the
// objects of one kind in parallel, and owners before their objects.
func (r *restoring) pass(ctx context.Context, core bool) error {
	var current schema.GroupVersionResource
	var batch []*unstructured.Unstructured
	created := 0
	flush := func(next schema.GroupVersionResource) error {
		before := r.done.Created
		err := r.restoreAll(ctx, current, batch)
		created, batch = created+r.done.Created-before, nil
		if next != current {
			if r.Progress != nil && current.Resource != "" {
				r.Progress(fmt.Sprintf("%d %s", created, current.GroupResource()))
			}
			current, created = next, 0
		}
		return err
	}
	err := r.each(func(resource schema.GroupVersionResource, o *unstructured.Unstructured) error {
		if (resource.Group == "") != core || resource == reports {
			return nil
		}
		if resource != current || len(batch) == page {
			if err := flush(resource); err != nil {
				return err
			}
		}
		batch = append(batch, o)
		return nil
	})
	return errors.Join(err, flush(schema.GroupVersionResource{}))
}

// sideBySide is the number of objects created at once.
const sideBySide = 32

// restoreAll creates objects of one kind. If one object fails, it continues with the others.
func (r *restoring) restoreAll(ctx context.Context, resource schema.GroupVersionResource, batch []*unstructured.Unstructured) error {
	var running sync.WaitGroup
	places, failures := make(chan struct{}, sideBySide), make([]error, len(batch))
	for i, o := range batch {
		places <- struct{}{}
		running.Go(func() {
			failures[i] = r.restore(ctx, resource, o)
			<-places
		})
	}
	running.Wait()
	var fatal error
	for _, err := range failures {
		switch {
		case err == nil:
		case ctx.Err() != nil || !isOfObject(err):
			fatal = errors.Join(fatal, err)
		default:
			r.done.Failed = append(r.done.Failed, err.Error())
		}
	}
	return fatal
}

// isOfObject reports whether an error concerns one object only. A restore continues after it.
func isOfObject(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && slices.Contains([]metav1.StatusReason{
		metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonNotFound,
	}, answer.Status().Reason)
}

func nameOf(o *unstructured.Unstructured) string {
	return strings.Replace(o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName(), " /", " ", 1)
}

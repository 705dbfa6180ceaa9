package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	secretResource     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	deploymentResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// installed is the state of the agent's own release when its deployment begins. A user may
// uninstall the release meanwhile. The deployment must then create nothing again.
type installed struct {
	cluster *Cluster
	release ID
	// newest is the newest revision; 0 if the release has no history. ended is set if a user has
	// already uninstalled this revision, and kept the history.
	newest int
	ended  bool
	// deployment is the UID of the agent's Deployment; empty if the agent runs without one.
	deployment types.UID
}

// observeInstalled reads the state at the beginning. A Deployment deleted since the start of this
// process is an error wrapping ErrBusy.
func (c *Cluster) observeInstalled(ctx context.Context, release ID) (*installed, error) {
	i := &installed{cluster: c, release: release}
	revisions, err := i.revisions(ctx)
	if err != nil {
		return nil, err
	}
	for version := range revisions {
		i.newest = max(i.newest, version)
	}
	i.ended = revisions[i.newest] == common.StatusUninstalled
	found, err := i.agent(ctx)
	if err != nil {
		return nil, err
	}
	if found != nil {
		c.agent.CompareAndSwap(nil, &found.UID)
	}
	if first := c.agent.Load(); first != nil {
		i.deployment = *first
		return i, i.stays(found)
	}
	return i, nil
}

// check returns an error wrapping ErrBusy if the release was uninstalled since the beginning. It
// checks nothing for the release of a Bundle: i is nil.
func (i *installed) check(ctx context.Context) error {
	if i == nil {
		return nil
	}
	if i.newest > 0 {
		revisions, err := i.revisions(ctx)
		if err != nil {
			return err
		}
		if err := i.removed(revisions); err != nil {
			return err
		}
	}
	if i.deployment == "" {
		return nil
	}
	found, err := i.agent(ctx)
	if err != nil {
		return err
	}
	return i.stays(found)
}

// removed returns an error if a user has begun to uninstall the release. Helm's command marks the
// newest revision, even one of the deployer.
func (i *installed) removed(revisions map[int]common.Status) error {
	if _, exists := revisions[i.newest]; !exists {
		return fmt.Errorf("revision %d of release %s is gone: %w", i.newest, i.release, ErrBusy)
	}
	for version, status := range revisions {
		ends := status == common.StatusUninstalling || status == common.StatusUninstalled
		if ends && (version > i.newest || version == i.newest && !i.ended) {
			return fmt.Errorf("revision %d of release %s is %s: %w", version, i.release, status, ErrBusy)
		}
	}
	return nil
}

// revisions returns the states of the revisions, by number.
func (i *installed) revisions(ctx context.Context) (map[int]common.Status, error) {
	list, err := i.cluster.Metadata.Resource(secretResource).Namespace(i.release.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: ofRelease(i.release.Name)})
	if err != nil {
		return nil, fmt.Errorf("reading the history of release %s: %w", i.release, err)
	}
	states := map[int]common.Status{}
	for _, secret := range list.Items {
		if version, err := strconv.Atoi(secret.Labels["version"]); err == nil {
			states[version] = common.Status(secret.Labels["status"])
		}
	}
	return states, nil
}

// agent returns the agent's Deployment, or nil.
func (i *installed) agent(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	namespace, name := i.cluster.AgentNamespace, i.cluster.Agent.Deployment
	found, err := i.cluster.Metadata.Resource(deploymentResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s/%s: %w", namespace, name, err)
	}
	return found, nil
}

func (i *installed) stays(found *metav1.PartialObjectMetadata) error {
	if found == nil || found.UID != i.deployment || !found.DeletionTimestamp.IsZero() {
		return fmt.Errorf("the Deployment %s/%s is deleted: %w", i.cluster.AgentNamespace, i.cluster.Agent.Deployment, ErrBusy)
	}
	return nil
}

// withdraw deletes the revision of a failed deployment if a user has uninstalled the agent
// meanwhile. Helm refuses to install a release with a revision.
func (c *Cluster) withdraw(ctx context.Context, configuration *action.Configuration, r Request, was past) {
	if err := c.installed.check(ctx); !errors.Is(err, ErrBusy) {
		return
	}
	stored, err := configuration.Releases.Get(r.Release, was.newest+1)
	revision, ok := stored.(*helm.Release)
	if err == nil && ok && revision.Chart.Metadata.Annotations[annotationDeploymentID] == r.DeploymentID {
		_, _ = configuration.Releases.Delete(r.Release, revision.Version) // the error of the deployment is returned
	}
}

// whileInstalled checks the agent's own release before each write that may create an object.
type whileInstalled struct {
	next      http.RoundTripper
	installed *installed
}

func (w whileInstalled) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		if err := w.installed.check(request.Context()); err != nil {
			if request.Body != nil {
				_ = request.Body.Close() // as http.RoundTripper requires
			}
			return nil, err
		}
	}
	return w.next.RoundTrip(request)
}

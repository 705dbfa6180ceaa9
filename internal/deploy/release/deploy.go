package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	helm "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/render"
)

const (
	// defaultTimeout bounds each hook, and any wait without a timeout in the options.
	defaultTimeout = 5 * time.Minute
	// defaultHistory is the default number of revisions to keep.
	defaultHistory = 2
	// defaultAccount is the account of deployments without an account in their options, if it exists.
	defaultAccount = "fleet-default"
	// hubAccount is the account of the hub. In its namespace a Bundle may name only accounts with
	// labelMayDeploy.
	hubAccount     = "fleet-controller"
	labelMayDeploy = "muster/may-deploy"
)

// Request is a release to deploy.
type Request struct {
	// Bundle is the name of the BundleDeployment, Workspace the namespace of its Bundle on the hub.
	Bundle, Workspace string
	// Release is the name of the release, Namespace the namespace of the release and of objects
	// without one.
	Release, Namespace string
	// Before is the current release, if it has another name or its history is elsewhere; else nil. The
	// new release takes over its objects.
	Before *Summary
	// Leaving are the Bundle's releases from before a move, removed after this deployment. The new
	// release takes over shared objects.
	Leaving []Summary
	// Chart and Values are the content to deploy. Deploy annotates the chart, and calls Render for its
	// templates.
	Chart  *chart.Chart
	Values map[string]any
	Render func(context.Context, render.Templates, render.Lookup) (map[string]string, error)
	// Copies are further objects of the release, from downstreamResources. An object of the chart with
	// the same name takes their place.
	Copies []*unstructured.Unstructured
	// Agent is set for the agent's own release. A user may have installed it.
	Agent bool
	// Rendered is called after rendering, before Deploy waits for the API server. It may be called
	// again.
	Rendered func()
	// Jobs is the note of the runs of Jobs so far. A Job with the same content does not run again.
	Jobs string
	// Options of the BundleDeployment.
	Options fleet.BundleDeploymentOptions
	// DeploymentID, UID and Version come from the BundleDeployment, Commit from its origin, Member is
	// the UID of the member's report.
	DeploymentID, UID, Version, Commit, Member string
}

// ID identifies the release.
func (r Request) ID() ID { return ID{Namespace: r.Namespace, Name: r.Release} }

// Owner returns the owner of the release after the deployment.
func (r Request) Owner() Owner {
	return Owner{Bundle: r.Bundle, Workspace: r.Workspace, Member: r.Member}
}

func (r Request) helm() fleet.HelmOptions {
	if r.Options.Helm == nil {
		return fleet.HelmOptions{}
	}
	return *r.Options.Helm
}

func (r Request) maxHistory() int {
	if most := r.helm().MaxHistory; most > 0 {
		return most
	}
	return defaultHistory
}

// Timeout returns the time limit of each hook, and of the wait for ready objects.
func (r Request) Timeout() time.Duration {
	if seconds := r.helm().TimeoutSeconds; seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultTimeout
}

func (r Request) waits() kube.WaitStrategy {
	if h := r.helm(); h.TimeoutSeconds > 0 || h.Atomic || h.WaitForJobs {
		return kube.StatusWatcherStrategy
	}
	return kube.HookOnlyStrategy
}

func (r Request) annotate(agentNamespace, account string) {
	if r.Chart.Metadata.Annotations == nil {
		r.Chart.Metadata.Annotations = map[string]string{}
	}
	for key, value := range map[string]string{
		annotationBundle: r.Bundle, annotationAgentNamespace: agentNamespace, annotationServiceAccount: account,
		annotationWorkspace:       r.Workspace,
		annotationKeepResources:   strconv.FormatBool(r.Options.KeepResources),
		annotationDeleteNamespace: strconv.FormatBool(r.Options.DeleteNamespace),
		annotationDeploymentID:    r.DeploymentID,
		annotationSyncGeneration:  strconv.FormatInt(r.Options.ForceSyncGeneration, 10),
		annotationCommit:          r.Commit,
		annotationMovedFrom:       r.leaves(), annotationJobs: r.Jobs,
	} {
		r.Chart.Metadata.Annotations[key] = value
	}
	if len(r.Leaving) == 0 {
		delete(r.Chart.Metadata.Annotations, annotationMovedFrom)
	}
	if r.Jobs == "" {
		delete(r.Chart.Metadata.Annotations, annotationJobs)
	}
}

// Deploy installs or upgrades the release, and returns after Helm has finished. The hooks have
// ended by then and, depending on the options, the objects are ready.
func (c *Cluster) Deploy(ctx context.Context, r Request) (Summary, error) {
	free, err := c.reserveFor(ctx, r)
	if err != nil {
		return Summary{}, err
	}
	defer free()
	as, acting, err := c.acting(ctx, r)
	if err != nil {
		return Summary{}, err
	}
	if err := c.moveBefore(ctx, acting, r); err != nil {
		return Summary{}, err
	}
	r.annotate(c.AgentNamespace, as)
	configuration := c.configuration(acting, r.Namespace, r.Namespace, r.maxHistory())
	if r.Agent {
		if r, err = c.adopt(ctx, configuration, r); err != nil {
			return Summary{}, err
		}
	}
	was, err := recoverHistory(configuration, r.Release)
	if err != nil {
		return Summary{}, err
	}
	configuration.Releases.MaxHistory += min(was.failed, maxFailed)
	if err := c.takeFields(ctx, acting, was.last, r); err != nil {
		return Summary{}, err
	}
	crds, err := c.bringCRDs(ctx, acting, r, was.namesOf(r.ID()))
	if err != nil {
		return Summary{}, err
	}
	crds.annotate()
	hooks := &hookClient{
		Client: configuration.KubeClient.(*kube.Client), ctx: ctx, acting: acting, earlier: was.resume(r),
		owner: r.hookOwner(was), runs: map[hookKey]hookRun{}, jobs: newJobRuns(r),
	}
	configuration.Releases.Driver = &progressDriver{configuration.Releases.Driver, func(store func()) error {
		hooks.store = store
		if r.Rendered != nil {
			r.Rendered()
		}
		return acting.installed.check(ctx)
	}}
	templates := &templates{ctx: ctx, configuration: configuration, acting: acting, request: r, past: was}
	configuration.CustomTemplateFuncs = render.Stubs(templates.render)
	after := &renderer{ctx: ctx, cluster: c, acting: acting, request: r}
	configuration.KubeClient = &upgradeClient{hookClient: hooks, releases: was.namesOf(r.ID()), after: after}
	made, err := was.carryOut()(ctx, configuration, r, after)
	if err != nil {
		acting.withdraw(ctx, configuration, r, was)
		return Summary{}, tooLarge(r, crds.explain(cmp.Or(templates.err, err)))
	}
	is := r.summary(made, as, crds.note())
	if was.failed > 0 && !r.Agent {
		c.sweepFailed(ctx, is, made.Manifest)
	}
	return is, nil
}

// hookOwner returns the owner of the hooks of a deployment. A user, or the hub, may have created
// the objects of the agent's own chart.
func (r Request) hookOwner(was past) hookOwner {
	o := hookOwner{release: r.ID(), releases: was.namesOf(r.ID()), unmarked: was.unmarked, takes: r.Agent || r.helm().TakeOwnership}
	for _, s := range r.Leaving {
		o.releases = append(o.releases, s.ID())
	}
	return o
}

// summary returns the summary of a deployed release.
func (r Request) summary(made *helm.Release, account, crds string) Summary {
	return Summary{
		Name: made.Name, Namespace: made.Namespace, Version: made.Version, DeployedAt: made.Info.LastDeployed,
		History: r.Namespace, Deployed: true, Bundle: r.Bundle, Workspace: r.Workspace, DeploymentID: r.DeploymentID,
		SyncGeneration: r.Options.ForceSyncGeneration, KeepResources: r.Options.KeepResources, DeleteNamespace: r.Options.DeleteNamespace,
		ServiceAccount: account, Member: r.Member, HubUID: r.UID, HubVersion: r.Version, Agent: r.Agent, Leaves: r.leaves(),
		Jobs: made.Chart.Metadata.Annotations[annotationJobs], CRDs: crds, Repeated: made.Chart.Metadata.Annotations[annotationRepeated],
	}
}

// reserveFor reserves the release of a request, and checks that it is missing or belongs to the
// Bundle. adopt checks the owner of the agent's own release, because the user owns it too.
func (c *Cluster) reserveFor(ctx context.Context, r Request) (free func(), err error) {
	id := r.ID()
	if id == c.Agent.ID {
		if r.Agent {
			return c.names.take(id, r.Bundle)
		}
		return nil, &Foreign{Release: id, Owner: "the agent"}
	}
	// The deployment takes over releases of an earlier membership of this cluster.
	free, err = c.reserve(ctx, id, id.Namespace, Owner{Bundle: r.Bundle, Workspace: r.Workspace})
	var other *reservedError
	if errors.As(err, &other) {
		return nil, &Foreign{Release: id, Owner: "Bundle " + other.bundle + ", which is being deployed"}
	}
	return free, err
}

// moveBefore moves the history of the release to its new place or name before the deployment. Helm
// then keeps the objects of the last revision, and deletes the dropped ones.
func (c *Cluster) moveBefore(ctx context.Context, acting *Cluster, r Request) error {
	if r.Before == nil || r.Agent {
		return nil
	}
	if err := c.prepareNamespace(ctx, acting, r, false); err != nil {
		return err
	}
	return c.moveInto(ctx, *r.Before, r.ID(), Owner{Bundle: r.Bundle, Workspace: r.Workspace})
}

// acting returns the account of a deployment, and the cluster with its rights.
func (c *Cluster) acting(ctx context.Context, r Request) (string, *Cluster, error) {
	if r.Agent {
		// A confined account must not do this.
		own, err := c.observeInstalled(ctx, r.ID())
		if err != nil {
			return "", nil, err
		}
		acting, err := c.asHelm(own)
		return "", acting, err
	}
	as, err := c.actsAs(ctx, r.Options)
	if err != nil {
		return "", nil, err
	}
	acting, err := c.As(as)
	return as, acting, err
}

// actsAs returns the account of a deployment; empty for the agent's own.
func (c *Cluster) actsAs(ctx context.Context, options fleet.BundleDeploymentOptions) (string, error) {
	if options.ServiceAccount == agentAccount {
		return "", fmt.Errorf("spec.options.serviceAccount is %s, the agent's own account, which confines nothing: name another account of "+
			"namespace %s, or none",
			agentAccount, c.AgentNamespace)
	}
	wanted := cmp.Or(options.ServiceAccount, defaultAccount)
	found, err := c.Kube.CoreV1().ServiceAccounts(c.AgentNamespace).Get(ctx, wanted, metav1.GetOptions{})
	switch {
	case err == nil && wanted != defaultAccount && found.Labels[labelMayDeploy] != "true":
		return wanted, c.besideNoHub(ctx, wanted)
	case err == nil:
		return wanted, nil
	case apierrors.IsNotFound(err) && options.ServiceAccount == "":
		return "", nil
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("service account %s/%s, which spec.options.serviceAccount names, does not exist downstream: create it with the "+
			"rights that the Bundle needs",
			c.AgentNamespace, wanted)
	default:
		return "", fmt.Errorf("reading service account %s/%s: %w", c.AgentNamespace, wanted, err)
	}
}

// besideNoHub returns an error if the agent shares the hub's namespace and the account lacks the
// label. The accounts of the hub's charts have rights that no Bundle may have.
func (c *Cluster) besideNoHub(ctx context.Context, account string) error {
	_, err := c.Kube.CoreV1().ServiceAccounts(c.AgentNamespace).Get(ctx, hubAccount, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading service account %s/%s: %w", c.AgentNamespace, hubAccount, err)
	}
	return fmt.Errorf("service account %s/%s, which spec.options.serviceAccount names, is not for Bundles: the hub's own accounts are in "+
		"this namespace; if it is meant for Bundles, kubectl -n %s label serviceaccount %s %s=true",
		c.AgentNamespace, account, c.AgentNamespace, account, labelMayDeploy)
}

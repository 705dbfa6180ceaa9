package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// joinTokenLife limits the token of a join. The limit matters if the command ends before it
// deletes the token.
const joinTokenLife = time.Hour

// agentRelease is the release of the chart fleet-agent, and clusterAgent its Deployment.
var agentRelease = chartRelease{"fleet-agent", naming.SystemNamespace}

var clusterAgent = types.NamespacedName{Namespace: naming.SystemNamespace, Name: "fleet-agent"}

// joinCluster registers a cluster as a Cluster, with a token for this cluster only.
func (j *joiner) joinCluster(ctx context.Context, cluster, hub *checked) error {
	workspace := j.workspace()
	if err := j.mayBegin(ctx, cluster, hub); err != nil {
		return err
	}
	if err := j.ensureNamespace(ctx, hub, workspace); err != nil {
		return err
	}
	if err := j.predefined(ctx, hub, workspace); err != nil {
		return err
	}
	token := &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: workspace, GenerateName: "join-"},
		Spec: fleet.ClusterRegistrationTokenSpec{
			TTL: &metav1.Duration{Duration: joinTokenLife}, MaxRegistrations: new(int32(1)), ClientID: j.id, ClusterName: j.name,
			Description: "made by muster join, which deletes it",
		},
	}
	if err := hub.Create(ctx, token); err != nil {
		return fmt.Errorf("creating a registration token in workspace %s: %w", workspace, err)
	}
	awaited := false // the agent may still register with the token
	defer func() {
		if awaited {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answersWithin)
		defer cancel()
		if err := kube.DeleteByUID(ctx, hub, token); err != nil {
			fmt.Fprintf(j.ErrOut, "Warning: deleting the registration token: %s; it expires in an hour\n", err)
		}
	}()
	secret, err := j.issued(ctx, hub, token)
	if err != nil {
		return err
	}
	values, err := j.agentValues(secret, hub)
	if err != nil {
		return err
	}
	if err := j.mayTake(ctx, cluster, hub, values["apiServerURL"]); err != nil {
		return err
	}
	if err := j.installAgent(ctx, cluster, agentRelease, values); err != nil {
		return err
	}
	err = j.followCluster(ctx, cluster, hub, token, values)
	awaited = err != nil
	return err
}

// ensureNamespace creates a namespace unless it exists. A user without the right to read it may
// have the right to create it. If both are refused, the namespace may exist, so the join goes on,
// and the next write decides.
func (j *joiner) ensureNamespace(ctx context.Context, c *checked, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	missing := apierrors.IsNotFound(err)
	if missing || apierrors.IsForbidden(err) {
		err = c.Create(ctx, namespace)
	} else {
		return err
	}
	switch {
	case err == nil:
		j.progress.step("namespace %s is created on %s", name, c.role)
	case apierrors.IsAlreadyExists(err):
	case apierrors.IsForbidden(err) && missing:
		return fmt.Errorf("namespace %s does not exist on %s, and you may not create it: have an administrator run kubectl create "+
			"namespace %s: %w", name, c.role, name, err)
	case apierrors.IsForbidden(err):
		j.progress.step("you may neither read nor create namespace %s on %s, so it must exist", name, c.role)
	default:
		return fmt.Errorf("creating namespace %s on %s: %w", name, c.role, err)
	}
	return j.progress.err
}

// predefined reads the client ID of an existing Cluster with the name of --name.
func (j *joiner) predefined(ctx context.Context, hub *checked, workspace string) error {
	if j.name == "" {
		return nil
	}
	var cluster fleet.Cluster
	err := hub.Get(ctx, client.ObjectKey{Namespace: workspace, Name: j.name}, &cluster)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case cluster.DeletionTimestamp != nil:
		return fmt.Errorf("%s is leaving; join again when it is gone", j.title(&cluster))
	case cluster.Spec.ClientID == "":
		return fmt.Errorf("%s has no spec.clientID, so no cluster can register as it: import it by its kubeconfig, or set spec.clientID",
			j.title(&cluster))
	}
	j.id = cluster.Spec.ClientID // the hub rejects a token with another client ID
	return nil
}

// agentValues returns the values of the chart fleet-agent from the token. Empty values replace
// earlier ones.
func (j *joiner) agentValues(secret *corev1.Secret, hub *checked) (map[string]any, error) {
	values := map[string]any{"clusterNamespace": "", "tokenName": ""}
	if err := yaml.Unmarshal(secret.Data[bootstrap.ValuesKey], &values); err != nil {
		return nil, fmt.Errorf("reading the values of the token: %w", err)
	}
	if known, _ := values["apiServerURL"].(string); known == "" {
		values["apiServerURL"], values["apiServerCA"] = hub.server, string(hub.config.CAData)
	}
	return j.address(values)
}

// address sets the address of the hub in an agent's values: from the flags, the cluster, and
// the user's values, in rising priority.
func (j *joiner) address(values map[string]any) (map[string]any, error) {
	if j.hubURL != "" {
		values["apiServerURL"] = j.hubURL
	}
	if j.caIn != "" {
		values["apiServerCA"] = j.caIn
	}
	labels := map[string]any{}
	for key, value := range j.labels {
		labels[key] = value
	}
	values["clientID"], values["labels"] = j.id, labels
	values["hubKubeconfig"] = nil // null removes the value of an earlier join
	return j.over(values)
}

func (j *joiner) installAgent(ctx context.Context, cluster *checked, r chartRelease, values map[string]any) error {
	helm, err := j.helm(r)
	if err != nil {
		return err
	}
	var imported []*unstructured.Unstructured
	if r == agentRelease {
		if imported, err = cluster.agentFits(ctx, values); err != nil {
			return err
		}
	}
	if err := j.beforeMove(ctx, cluster, helm, len(imported) > 0); err != nil {
		return err
	}
	if len(imported) > 0 {
		if err := helm.note(imported); err != nil {
			return err
		}
		helm.replaces = true
		j.progress.step("the agent that Rancher Fleet's hub installed is noted as revision 1 of release %s", r.chart)
	}
	made, err := helm.deploy(ctx, values)
	if err != nil {
		return err
	}
	j.progress.step("chart %s %s is installed, revision %d", r.chart, made.Chart.Metadata.Version, made.Version)
	return j.progress.err
}

// reinstallAgent installs the agent again if its release has lost the token. The deployer of
// the agent may have upgraded the release at the same time, with the earlier values.
func (j *joiner) reinstallAgent(ctx context.Context, cluster *checked, values map[string]any) error {
	helm, err := j.helm(agentRelease)
	if err != nil {
		return err
	}
	has, err := helm.values()
	if err != nil || has["token"] == values["token"] {
		return err
	}
	j.progress.step("another program has changed the release; retrying")
	if err := j.installAgent(ctx, cluster, agentRelease, values); err != nil {
		return final{err}
	}
	return nil
}

// followCluster prints the progress of the agent's registration request, and then of its
// Cluster.
func (j *joiner) followCluster(ctx context.Context, cluster, hub *checked, token *fleet.ClusterRegistrationToken,
	values map[string]any) error {
	looked := time.Now()
	request, record := &fleet.ClusterRegistration{}, &fleet.Cluster{}
	unseen, err := await(ctx, &j.progress, func(ctx context.Context) (bool, error) {
		if err := j.requestOf(ctx, hub, token, request); err != nil {
			return false, err
		}
		cause, ready, err := cluster.causeOf(ctx, clusterAgent.Namespace, clusterAgent.Name)
		if err != nil {
			return false, err
		}
		if request.Name == "" && time.Since(looked) > startsWithin {
			looked = time.Now()
			if err := j.reinstallAgent(ctx, cluster, values); err != nil {
				return false, err
			}
		}
		switch {
		case request.Name == "" && cause != nil:
			j.progress.hindrance("the agent", cause)
			return false, nil
		case request.Name == "":
			j.progress.step("the agent is running, and has sent no registration request yet: %s", view.Or(cluster.agentSays(ctx, clusterAgent)))
			return false, nil
		case !request.Status.Granted:
			j.progress.step("the registration request is %s%s", view.State(request), because(request))
			if request.Status.State == fleet.RegistrationDenied && request.Status.Reason != reasons.Superseded {
				return false, final{errors.New("the hub denies the registration request; for the reason, run muster get requests on the hub")}
			}
			return false, nil
		}
		err = hub.Get(ctx, client.ObjectKey{Namespace: request.Namespace, Name: request.Status.ClusterName}, record)
		if err != nil {
			return false, client.IgnoreNotFound(err)
		}
		j.progress.step("%s is %s%s", j.title(record), view.State(record), because(record))
		if joined := ready && !record.Status.Agent.LastSeen.IsZero(); !joined {
			return false, nil
		}
		return j.settled(view.State(record)), nil
	})
	if err == nil {
		if err := j.sayFormer(ctx, cluster); err != nil {
			return err
		}
		return j.show(ctx, hub, record)
	}
	objects := []client.Object{token}
	if request.Name != "" {
		objects = []client.Object{request}
	}
	if record.Name != "" {
		objects = []client.Object{record}
	}
	failed := j.failed(ctx, unseen, cluster, clusterAgent, objects...)
	if !wait.Interrupted(err) && ctx.Err() == nil {
		return err
	}
	return failed
}

// requestOf reads the newest request of a token, if there is one. A restarted agent may create
// several; the hub deletes the superseded ones.
func (j *joiner) requestOf(ctx context.Context, hub *checked, token *fleet.ClusterRegistrationToken,
	into *fleet.ClusterRegistration) error {
	var requests []fleet.ClusterRegistration
	err := view.Each(ctx, hub, &fleet.ClusterRegistrationList{}, func(o client.Object) {
		requests = append(requests, *o.(*fleet.ClusterRegistration).DeepCopy())
	}, client.InNamespace(token.Namespace), client.MatchingLabels{fleet.LabelRegistrationToken: token.Name})
	if err != nil {
		return fmt.Errorf("reading the registration request: %w", err)
	}
	*into = newestRequest(requests)
	return nil
}

// newestRequest returns the newest request. In the same second, a granted request wins, and a
// superseded one loses. The result has no name if there is no request.
func newestRequest(requests []fleet.ClusterRegistration) (newest fleet.ClusterRegistration) {
	for _, r := range requests {
		if r.Status.Reason == reasons.Superseded && newest.Name != "" {
			continue
		}
		if newest.Name == "" || newest.Status.Reason == reasons.Superseded || newest.CreationTimestamp.Before(&r.CreationTimestamp) ||
			newest.CreationTimestamp.Equal(&r.CreationTimestamp) && !newest.Status.Granted {
			newest = r
		}
	}
	return newest
}

// joinByToken installs the agent with an existing token, and waits until the agent has joined.
func (j *joiner) joinByToken(ctx context.Context, cluster *checked) error {
	// the token comes from this cluster
	if user, err := cluster.userOf(ctx, j.token); err == nil && strings.HasPrefix(user, "system:serviceaccount:") {
		return fmt.Errorf("the token belongs to a hub on %s, and "+itself, cluster.role)
	}
	if err := j.mayTake(ctx, cluster, nil, j.hubURL); err != nil {
		return err
	}
	values, err := j.address(map[string]any{"token": j.token, "clusterNamespace": "", "tokenName": ""})
	if err != nil {
		return err
	}
	if err := j.installAgent(ctx, cluster, agentRelease, values); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	err = cluster.awaitDeployment(ctx, &j.progress, clusterAgent.Namespace, clusterAgent.Name, "the agent")
	if err = inTime(ctx, err); err != nil {
		return err
	}
	j.progress.line("The cluster has joined. To list the members, run muster get on the hub.")
	return j.progress.err
}

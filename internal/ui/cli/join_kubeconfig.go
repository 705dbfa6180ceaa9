package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/hublogin"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// kubeconfigSecret is the Secret that join makes for the agent's kubeconfig of the hub.
const kubeconfigSecret = naming.HubKubeconfigSecret

// validateKubeconfig checks the flags of a join with a kubeconfig. The command itself needs no
// access to the hub.
func (j *joiner) validateKubeconfig() error {
	switch {
	case j.hubKubeconfig == "":
		return errors.New("--token-name needs --hub-kubeconfig FILE")
	case j.hubContext != "" || j.token != "":
		return errors.New("--hub-kubeconfig is for a join without --hub-context and without --token: leave them out")
	case j.member && j.tokenName != "":
		return errors.New("a MemberCluster needs no registration token: leave --token-name out")
	case j.member && j.id != "":
		return errors.New("a MemberCluster has no client ID: use --name")
	case !j.member && j.tokenName == "":
		return errors.New("a Cluster needs a registration token, which sets its limits: use --token-name NAME, and --namespace WORKSPACE")
	case !j.member && j.name != "":
		return errors.New("the registration token names the Cluster: --name is for --member or --hub-context")
	case j.timeout <= 0:
		return errors.New("--timeout must be more than 0")
	case j.member:
		return problemOf("MemberCluster", j.memberName(), naming.MaxMemberClusterName)
	}
	return nil
}

// joinByKubeconfig stores the kubeconfig on the cluster, installs the agent, and waits until the
// agent has joined.
func (j *joiner) joinByKubeconfig(ctx context.Context, cluster *checked) error {
	kubeconfig, err := os.ReadFile(j.hubKubeconfig)
	if err != nil {
		return fmt.Errorf("reading --hub-kubeconfig: %w", err)
	}
	server, ca, err := hublogin.Check(kubeconfig, "")
	if err != nil {
		return fmt.Errorf("--hub-kubeconfig %s cannot be used: %w", j.hubKubeconfig, err)
	}
	if j.hubURL, j.caIn = cmp.Or(j.hubURL, server), cmp.Or(j.caIn, string(ca)); j.hubURL == "" {
		return fmt.Errorf("--hub-kubeconfig %s has no server: use --hub-url https://HOST:PORT", j.hubKubeconfig)
	}
	release, agent, values, err := j.kubeconfigValues(ctx, cluster)
	if err != nil {
		return err
	}
	if err := j.ensureNamespace(ctx, cluster, agent.Namespace); err != nil {
		return err
	}
	if err := j.storeKubeconfig(ctx, cluster, agent.Namespace, kubeconfig); err != nil {
		return err
	}
	if err := j.installAgent(ctx, cluster, release, values); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	err = cluster.awaitDeployment(ctx, &j.progress, agent.Namespace, agent.Name, "the agent")
	if err = inTime(ctx, err); err != nil {
		return err
	}
	j.progress.line("The cluster has joined. To list the members, run muster get on the hub.")
	return j.progress.err
}

// kubeconfigValues returns the release, the Deployment and the values of the agent.
func (j *joiner) kubeconfigValues(ctx context.Context, cluster *checked) (chartRelease, types.NamespacedName, map[string]any, error) {
	kubeconfig := map[string]any{"secret": kubeconfigSecret}
	if !j.member {
		if err := j.mayTake(ctx, cluster, nil, j.hubURL); err != nil {
			return agentRelease, clusterAgent, nil, err
		}
		values, err := j.address(map[string]any{"token": "", "clusterNamespace": j.workspace(), "tokenName": j.tokenName})
		values["hubKubeconfig"] = kubeconfig
		return agentRelease, clusterAgent, values, err
	}
	j.name = j.memberName()
	values, err := j.over(map[string]any{
		"config":    map[string]any{"hubURL": j.hubURL, "hubCA": j.caIn, "memberClusterName": j.name},
		"namespace": naming.MemberSystemNamespace, "hubKubeconfig": kubeconfig,
	})
	if err != nil {
		return chartRelease{}, memberAgent, nil, err
	}
	release, err := j.mayTakeMember(ctx, cluster, nil, values)
	return release, memberAgent, values, err
}

// storeKubeconfig writes the kubeconfig to the Secret for the chart. It leaves a Secret of another
// owner alone.
func (j *joiner) storeKubeconfig(ctx context.Context, cluster *checked, namespace string, kubeconfig []byte) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: kubeconfigSecret, Labels: map[string]string{labelMadeBy: madeByUs}},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{hublogin.Key: kubeconfig},
	}
	existing := kube.CoreMetadata("Secret")
	err := cluster.Get(ctx, client.ObjectKeyFromObject(secret), existing)
	switch {
	case apierrors.IsNotFound(err):
		err = cluster.Create(ctx, secret)
	case err != nil:
	case existing.Labels[labelMadeBy] != madeByUs:
		//nolint:staticcheck // a kind
		return fmt.Errorf("Secret %s/%s on %s has another owner: delete it to join with another kubeconfig", namespace, kubeconfigSecret,
			cluster.role)
	default:
		secret.UID, secret.ResourceVersion = existing.UID, existing.ResourceVersion
		err = cluster.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("storing the kubeconfig in Secret %s/%s on %s: %w", namespace, kubeconfigSecret, cluster.role, err)
	}
	return nil
}

package crash

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// clusterToImport makes the kubeconfig by which the hub reaches the member.
func (in *run) clusterToImport() {
	in.t.Helper()
	in.newNode()
	reach := in.wire.front(in.t, in.node.own, func(*http.Request) string { return hub })
	in.create(in.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "kubeconfig"}, Data: map[string][]byte{
		"value":        reach.Kubeconfig(in.t, bearer(in.t, in.on, metav1.NamespaceDefault, "agent")),
		"apiServerURL": []byte(in.hubFront.Config.Host), "apiServerCA": in.hubFront.Config.CAData,
	}})
}

// importCluster has the hub install the agent, which the hub does not manage: that
// is another scenario.
func (in *run) importCluster() {
	in.t.Helper()
	cluster := in.cluster()
	cluster.Labels = map[string]string{fleet.LabelNonManagedAgent: "true"}
	cluster.Spec.KubeConfigSecret, cluster.Spec.AgentNamespace = "kubeconfig", in.agentNamespace()
	in.create(in.Client, cluster)
	in.untilTrue(fleet.ConditionReady)
}

func (in *run) importedCluster() {
	in.t.Helper()
	in.clusterToImport()
	in.importCluster()
}

// upgrade lets the hub manage the agent, which so adopts its own release, and then changes the
// agent's settings, which replaces its Pod.
func (in *run) upgrade() {
	in.t.Helper()
	cluster := in.cluster()
	in.change(cluster, func() { delete(cluster.Labels, fleet.LabelNonManagedAgent) })
	in.untilTrue(fleet.ConditionAgentUpToDate)
	setting := corev1.EnvVar{Name: "SETTING", Value: in.id}
	in.change(cluster, func() { cluster.Spec.AgentEnvVars = []corev1.EnvVar{setting} })
	in.eventually("the agent runs with its new setting", func() error {
		var deployment appsv1.Deployment
		if err := in.on.Get(context.Background(),
			client.ObjectKey{Namespace: in.agentNamespace(), Name: "fleet-agent"}, &deployment); err != nil {
			return err
		}
		if env := deployment.Spec.Template.Spec.Containers[0].Env; !slices.Contains(env, setting) {
			return fmt.Errorf("its environment is %v", env)
		}
		if s := deployment.Status; s.ObservedGeneration != deployment.Generation || s.UpdatedReplicas != 1 || s.Replicas != 1 ||
			s.AvailableReplicas != 1 {
			return fmt.Errorf("its Deployment is %+v", s)
		}
		return nil
	})
	in.untilTrue(fleet.ConditionAgentUpToDate)
	in.untilTrue(fleet.ConditionReady)
}

// leaveWithAgent deletes a Cluster whose agent is to remove itself, and waits until nothing of the
// agent is left on the member. The definition of AppliedWorks goes, too, and other runs need it.
func (in *run) leaveWithAgent() {
	in.t.Helper()
	in.t.Cleanup(func() { in.member.InstallCRDs(in.t) })
	cluster := in.cluster()
	in.change(cluster, func() {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1beta1.AnnotationUninstallAgent, "true")
	})
	in.untilGone(cluster, naming.MemberNamespace(in.id, cluster.Name))
	in.eventually("the agent is gone", func() error {
		at := metav1.ObjectMeta{Namespace: in.agentNamespace(), Name: agentDeployment}
		for _, o := range []client.Object{
			&appsv1.Deployment{ObjectMeta: at}, &corev1.ServiceAccount{ObjectMeta: at}, &rbacv1.Role{ObjectMeta: at},
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-agent-delivery"}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fleet-agent-delivery"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: naming.AgentSecret}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: naming.AgentKeySecret}},
		} {
			if err := in.on.Get(context.Background(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T %s is still there: %w", o, o.GetName(), err)
			}
		}
		if pods := len(in.node.pods); pods > 0 {
			return fmt.Errorf("%d Pods are still there", pods)
		}
		return nil
	})
}

// configure writes the settings of the hub.
func (in *run) configure(settings string) {
	in.t.Helper()
	of := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubConfigMap}}
	in.change(of, func() { of.Data = map[string]string{"config": settings} })
}

// clusterWithShortCredential joins while credentials live for ten minutes, which is as short as
// Kubernetes allows. The next one lives as long as usual.
func (in *run) clusterWithShortCredential() {
	in.t.Helper()
	in.configure(`{"agentTokenLifetime":"10m"}`)
	in.joinByToken()
	in.configure(testkube.HubSettings)
}

// renew waits for the renewal, which is due some 80 seconds after such a credential was issued, and
// not again for a day.
func (in *run) renew() {
	in.t.Helper()
	in.eventually("the renewed credential is in use", func() error {
		cluster, stored, report := in.cluster(), in.stored(), &clusterv1beta1.InternalMemberCluster{}
		if err := in.Get(context.Background(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		if err := in.get(report, naming.MemberNamespace(in.id, cluster.Name), cluster.Name); err != nil {
			return err
		}
		c, issued := cluster.Status.Credential, report.Spec.Credential
		if c == nil || c.Sequence != 1 || string(stored.Data["sequence"]) != "1" || issued == nil || len(issued.Sealed) > 0 {
			return fmt.Errorf("the record says %+v, the agent has %s, the report has %+v", c, stored.Data["sequence"], issued)
		}
		return nil
	})
}

// stored is the Secret with the agent's credential.
func (in *run) stored() *corev1.Secret {
	in.t.Helper()
	secret := &corev1.Secret{}
	in.check(in.on.Get(context.Background(), client.ObjectKey{Namespace: in.agentNamespace(), Name: naming.AgentSecret}, secret))
	return secret
}

// clusterThatWasAway joins, and is then without an agent until its credential has run out: the
// token in its Secret says so, and the hub refuses it.
func (in *run) clusterThatWasAway() {
	in.t.Helper()
	in.joinByToken()
	in.programs[agent][0].Kill()
	secret := in.stored()
	claims := credential.ClaimsOf(string(secret.Data["token"]))
	payload := fmt.Sprintf(`{"sub":%q,"iat":1,"exp":601,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, claims.Subject, claims.AccountUID)
	secret.Data["token"] = []byte("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln")
	in.check(in.on.Update(context.Background(), secret))
}

// comeBack starts the agent, which gets another identity by its key; the one before is gone.
func (in *run) comeBack() {
	in.t.Helper()
	before, account := credential.ClaimsOf(string(in.stored().Data["token"])), kube.CoreMetadata("ServiceAccount")
	in.programs[agent][0].Start()
	in.eventually("the agent uses another identity", func() error {
		now := credential.ClaimsOf(string(in.stored().Data["token"]))
		err := in.get(account, naming.MemberNamespace(in.id, naming.Cluster(in.id)), naming.MemberServiceAccount)
		if err == nil && (now.AccountUID == before.AccountUID || now.AccountUID != string(account.UID)) {
			err = fmt.Errorf("it uses account %s, there is %s", now.AccountUID, account.UID)
		} else if apierrors.IsNotFound(err) {
			err = fmt.Errorf("the account is being replaced: %w", err)
		}
		return err
	})
	in.untilTrue(fleet.ConditionReady)
}

// clusterAtAnAddress joins a hub whose settings say where it is.
func (in *run) clusterAtAnAddress() {
	in.t.Helper()
	in.moveTo(in.hubFront, in.hubFront)
	in.joinByToken()
	in.untilThere(in.hubFront, in.hubFront)
}

// rotate moves the agent to another address with another CA as docs/operations/hub-move.md says:
// first both are trusted, then it moves, then the old CA goes.
func (in *run) rotate() {
	in.t.Helper()
	for _, step := range [][]testkube.Cluster{
		{in.hubFront, in.hubFront, in.otherFront}, {in.otherFront, in.hubFront, in.otherFront}, {in.otherFront, in.otherFront},
	} {
		in.moveTo(step[0], step[1:]...)
		in.untilThere(step[0], step[1:]...)
	}
}

func (in *run) moveTo(at testkube.Cluster, trusted ...testkube.Cluster) {
	in.t.Helper()
	settings, err := json.Marshal(map[string]string{
		"apiServerURL": at.Config.Host, "apiServerCA": string(bundle(trusted)), "agentTLSMode": "strict",
	})
	in.check(err)
	in.configure(string(settings))
}

func (in *run) untilThere(at testkube.Cluster, trusted ...testkube.Cluster) {
	in.t.Helper()
	in.untilTrue(fleet.ConditionHubConfigured, at.Config.Host, credential.CAHash(bundle(trusted))[:12])
}

// bundle has the CAs of several addresses.
func bundle(of []testkube.Cluster) (all []byte) {
	for _, one := range of {
		all = append(all, one.Config.CAData...)
	}
	return all
}

package cli

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// imports plays a hub of Rancher Fleet that applies its agent on a member, and has it deliver its
// own Bundle then, which takes the Deployment.
func (d their) imports(name, image string) (configMap *corev1.ConfigMap, deployment *appsv1.Deployment,
	binding *rbacv1.ClusterRoleBinding) {
	d.t.Helper()
	const role = naming.SystemNamespace + "-fleet-agent-role"
	at := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: name}
	}
	configMap = &corev1.ConfigMap{ObjectMeta: at("fleet-agent"), Data: map[string]string{"config": `{"clientID":"` + name + `"}`}}
	binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role + "-binding"}, RoleRef: rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role,
	},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: naming.SystemNamespace, Name: "fleet-agent"}}}
	deployment = &appsv1.Deployment{}
	d.check(yaml.Unmarshal([]byte(deploymentOf("fleet-agent", naming.SystemNamespace, "app: fleet-agent", image)), deployment))
	deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CHECKIN_INTERVAL", Value: "15m"}}
	d.check(client.IgnoreAlreadyExists(d.Create(d.t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: naming.SystemNamespace},
	})))
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: at("fleet-agent")}, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}}, binding,
		deployment,
	} {
		inSet(o, "fleet-agent-bootstrap", "", "", "")
		if o == deployment {
			inSet(o, "default-fleet-agent-"+name, "", "", "")
			o.GetLabels()[labelMadeBy] = "Helm"
			o.GetAnnotations()["meta.helm.sh/release-name"], o.GetAnnotations()["meta.helm.sh/release-namespace"] = "fleet-agent-"+name,
				naming.SystemNamespace
		}
		d.check(d.Create(d.t.Context(), o))
	}
	return configMap, deployment, binding
}

// TestAnImportedMemberOfAHubOfRancherFleetMovesAndGoesBack takes three control planes, two of them
// with Pods. The agent of an imported member has no release of Helm.
func TestAnImportedMemberOfAHubOfRancherFleetMovesAndGoesBack(t *testing.T) {
	t.Parallel()
	hub, edge, old := withPods(t, "cli-imports"), withPods(t, "cli-imported", theirImages...), testkube.Turn(t, "cli-importer")
	admin, ctx := contexts(t, hub, edge), t.Context()
	admin.runs("init")
	d, o, h := their{t, edge, edge.Client(t)}, rancherHub{their{t, old, old.Client(t)}}, hub.Client(t)
	old.InstallCRDs(t)
	token := o.token("request-1")
	o.accepts("request-1", true)
	config, deployment, binding := d.imports("c-1", "mirror/rancher/fleet-agent:v0.16.1")
	d.check(d.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret},
		StringData: map[string]string{
			"kubeconfig": string(old.Kubeconfig(t, token)), "clusterNamespace": "fleet-default", "clusterName": "c-1",
			"deploymentNamespace": "cluster-fleet-default-c-1"}}))
	before := maps.Clone(d.data(naming.AgentSecret))
	uid := deployment.UID

	const there, back = "migrate --from rancher-fleet --context cli-imports cli-imported",
		"migrate --from rancher-fleet --context cli-imports --back cli-imported"
	// A ConfigMap of another owner has the name of the agent's.
	d.check(d.Create(ctx, config))
	const moveTo = "move --context cli-imported --hub-context cli-imports -n never"
	for _, line := range []string{there + " --dry-run", there, moveTo} {
		admin.refused(line, "and no mark of Rancher Fleet; nothing is changed",
			"label configmaps fleet-agent --overwrite app.kubernetes.io/managed-by=Helm")
	}
	tokens := &fleet.ClusterRegistrationTokenList{}
	if err := h.List(ctx, tokens, client.InNamespace("clusters")); err != nil || len(tokens.Items) > 0 ||
		d.data(keptCredential) != nil || d.isReleased() {
		t.Errorf("something was written: %d tokens (%v), release %t", len(tokens.Items), err, d.isReleased())
	}
	if err := h.Get(ctx, client.ObjectKey{Name: "never"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the workspace of a move that is refused: %v", err)
	}
	inSet(config, "fleet-agent-bootstrap", "", "", "")
	d.check(d.Update(ctx, config))
	admin.runs(there+" --dry-run", "is Cluster fleet-default/c-1 of the hub at "+old.Config.Host+", and moves to this hub",
		"Muster's chart would replace")
	if d.isReleased() {
		t.Error("--dry-run has made a release")
	}

	admin.runs(there, "the agent that Rancher Fleet's hub installed is noted as revision 1 of release fleet-agent", "\nclusters/cluster-",
		"To go back: muster migrate")
	d.check(d.Get(ctx, clusterAgent, deployment))
	c := deployment.Spec.Template.Spec.Containers[0]
	if last := d.last(); deployment.UID != uid || !strings.Contains(c.Image, "muster-agent") || last.Chart.Metadata.Home == "" {
		t.Errorf("Deployment %s, of before %s, runs %s, by chart %+v", deployment.UID, uid, c.Image, last.Chart.Metadata)
	}
	for _, v := range c.Env {
		if v.Name == "CHECKIN_INTERVAL" {
			t.Errorf("of the agent before is left: %+v", v)
		}
	}
	if err := d.Get(ctx, client.ObjectKeyFromObject(binding), binding); !apierrors.IsNotFound(err) {
		t.Errorf("reading what lets Rancher Fleet's agent do everything: %v", err)
	}

	admin.runs(back, "cluster cli-imported is Cluster fleet-default/c-1 of the hub at "+old.Config.Host+" again.")
	d.check(d.Get(ctx, clusterAgent, deployment))
	if c := deployment.Spec.Template.Spec.Containers[0]; deployment.UID != uid ||
		c.Image != "mirror/rancher/fleet-agent:v0.16.1" || len(c.Env) != 1 {
		t.Errorf("Deployment %s, of before %s, runs %s with %v", deployment.UID, uid, c.Image, c.Env)
	}
	d.check(d.Get(ctx, client.ObjectKeyFromObject(binding), binding))
	if diff := cmp.Diff(before, d.data(naming.AgentSecret)); diff != "" || !ofRancherAgent(binding) {
		t.Errorf("the agent of before has not what it had (-want +got):\n%s", diff)
	}

	d.uninstall("fleet-agent", naming.SystemNamespace) // for another turn
	d.check(d.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret}}))
}

// importedInPlace is an imported member of a hub of Rancher Fleet that Muster's hub replaces.
type importedInPlace struct {
	their
	hub        testkube.Cluster
	deployment *appsv1.Deployment
	secret     map[string][]byte
}

// importedAs makes a cluster a member of a hub of Rancher Fleet, with heartbeats.
func (h rancherHub) importedAs(name string, edge testkube.Cluster) importedInPlace {
	h.t.Helper()
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: fleet.ClusterSpec{ClientID: name}}
	h.check(h.Create(h.t.Context(), cluster))
	registration := h.registers(cluster)
	d := importedInPlace{their: their{h.t, edge, edge.Client(h.t)}, hub: h.cluster}
	var config *corev1.ConfigMap
	config, d.deployment, _ = d.imports(name, "mirror/rancher/fleet-agent:v0.16.1")
	inSet(config, "fleet-agent-bootstrap", "", "", "")
	d.check(d.Create(h.t.Context(), config))
	d.check(d.Create(h.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret},
		StringData: map[string]string{
			"kubeconfig": string(h.cluster.Kubeconfig(h.t, registration.token)), "clusterNamespace": "default", "clusterName": name,
			"deploymentNamespace": naming.MemberNamespace("default", name)},
	}))
	d.secret = d.data(naming.AgentSecret)
	d.plays(clusterAgent, "mirror/rancher/fleet-agent", registration.beat)
	return d
}

// runsImage checks that the Deployment of the agent is the one of before, with an image.
func (d importedInPlace) runsImage(part string) {
	d.t.Helper()
	now := &appsv1.Deployment{}
	d.check(d.Get(d.t.Context(), clusterAgent, now))
	if image := now.Spec.Template.Spec.Containers[0].Image; now.UID != d.deployment.UID || !strings.Contains(image, part) {
		d.t.Errorf("Deployment %s, of before %s, runs %s", now.UID, d.deployment.UID, image)
	}
}

// goes gives the member Muster's agent.
func (d importedInPlace) goes(admin user) {
	d.t.Helper()
	admin.runs("migrate --from rancher-fleet --dry-run cli-imported",
		"is registered by the hub of Rancher Fleet that was in the place of this one",
		"Muster's chart would replace the release fleet-agent")
	if d.isReleased() {
		d.t.Error("--dry-run has made a release")
	}
	admin.runs("migrate --from rancher-fleet cli-imported",
		"the agent that Rancher Fleet's hub installed is noted as revision 1 of release fleet-agent", "\ndefault/c-2 Cluster ")
	d.runsImage("muster-agent")
}

// returns gives the member Rancher Fleet's agent again.
func (d importedInPlace) returns(admin user) {
	d.t.Helper()
	admin.runs("migrate --from rancher-fleet --back cli-imported", "is Cluster default/c-2 of the hub at "+d.hub.Config.Host+" again.")
	d.runsImage("mirror/rancher/fleet-agent:v0.16.1")
	if diff := cmp.Diff(d.secret, d.data(naming.AgentSecret)); diff != "" {
		d.t.Errorf("the agent of before has not what it had (-want +got):\n%s", diff)
	}
}

// ends leaves the control plane for another turn.
func (d importedInPlace) ends() {
	d.t.Helper()
	d.uninstall("fleet-agent", naming.SystemNamespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.AgentSecret}}
	d.check(d.Delete(d.t.Context(), secret))
}

// isReleased reports whether there is a release of the agent.
func (d their) isReleased() bool {
	_, err := d.helm("fleet-agent", naming.SystemNamespace).Releases.Last("fleet-agent")
	return err == nil
}

// TestAnObjectThatCannotBeReadIsNotAbsent tells the three answers of a cluster apart.
func TestAnObjectThatCannotBeReadIsNotAbsent(t *testing.T) {
	t.Parallel()
	role := rbacv1.Resource("clusterroles")
	const name = naming.SystemNamespace + "-fleet-agent-role"
	theirs := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	inSet(theirs, "fleet-agent-bootstrap", "", "", "")
	for what, row := range map[string]struct {
		has   []client.Object
		fails error
		found int
		says  string
	}{
		"nothing is there":                 {},
		"the agent of Rancher Fleet's hub": {has: []client.Object{theirs}, found: 1},
		"the user may not read it": {
			has: []client.Object{theirs}, fails: apierrors.NewForbidden(role, name, nil), says: "you may not read it",
		},
		"the API server fails":               {fails: apierrors.NewInternalError(errors.New("no leader")), says: "no leader"},
		"the API server answers with a wait": {fails: apierrors.NewTooManyRequests("slow down", 1), says: "slow down"},
	} {
		h, scheme, mapper := newAccess(), runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
		if err := rbacv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
		c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(row.has...).
			WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, under client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption) error {
				if row.fails != nil {
					return row.fails
				}
				return under.Get(ctx, key, o, options...)
			}}).Build()}
		found, err := c.imported(t.Context())
		if len(found) != row.found || (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %d objects, %v", what, len(found), err)
		}
	}
}

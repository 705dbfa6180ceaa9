package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestAMemberJoinsOnlyByAName(t *testing.T) {
	for name, want := range map[string]string{
		"edge-1": "",
		"":       "", // the context, edge
		"kubernetes-admin@kubernetes": "kubernetes-admin@kubernetes is not a valid name of a MemberCluster, use another --name: a lowercase " +
			"RFC 1123 label must",
		"edge.example.com": "use another --name: must not contain dots",
		"arn:aws:eks:eu-central-1:123456789012:cluster/production": "use another --name: it has more than 50 characters",
		strings.Repeat("a", naming.MaxMemberClusterName+1):         "use another --name: it has more than 50 characters",
		strings.Repeat("a", naming.MaxMemberClusterName):           "",
	} {
		h := newAccess()
		*h.Context = "edge"
		j := &joiner{access: h, hubContext: "hub", member: true, name: name, timeout: time.Minute}
		if err := j.validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
		if *h.Context = name; name != "" {
			j.name = ""
			if err := j.validate(); (err == nil) != (want == "") {
				t.Errorf("by the context %q: %v", name, err)
			}
		}
	}
}

func TestAMemberThatWasRevokedIsToldItsNamespace(t *testing.T) {
	hub := &checked{server: "https://hub", config: &rest.Config{}}
	revoked := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{clusterv1beta1.AnnotationMemberEpoch: "2"}},
	}
	for name, row := range map[string]struct {
		found *clusterv1beta1.MemberCluster
		set   []string
		want  string
	}{
		"there is none yet":                        {nil, nil, ""},
		"it was never revoked":                     {&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}, nil, ""},
		"it was revoked twice":                     {revoked, nil, membernamespace.OfMemberCluster(revoked).Namespace},
		"it was, and the user says something else": {revoked, []string{"config.memberNamespace=fleet-member-edge-9"}, "fleet-member-edge-9"},
	} {
		j := &joiner{name: "edge"}
		j.Values = row.set
		got, err := j.memberValues(row.found, hub)
		want := map[string]any{
			"namespace": naming.MemberSystemNamespace, "config": map[string]any{
				"hubURL": "https://hub", "hubCA": "", "memberClusterName": "edge", "memberNamespace": row.want,
			},
			"hubKubeconfig": nil, // removes the value of an earlier join
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestAnAgentWithACredentialOfItsOwnHasJoined(t *testing.T) {
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: memberToken.Namespace, Name: memberToken.Name, Labels: map[string]string{labelMadeBy: madeByUs}},
	}
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: memberToken.Namespace, Name: memberToken.Name}}
	credential := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: naming.MemberAgentCredentialSecret}}
	agent := func(ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: memberAgent.Name}, Status: appsv1.DeploymentStatus{ReadyReplicas: ready},
		}
	}
	for what, row := range map[string]struct {
		has   []client.Object
		never bool
	}{
		"a token, and an agent that is ready": {[]client.Object{token, agent(1)}, false},
		"a token, and one that is not":        {[]client.Object{token, agent(0)}, true},
		"nothing":                             {nil, false},
		"a token that somebody else made":     {[]client.Object{theirs}, false},
		"a token of join":                     {[]client.Object{token}, true},
		"that, and a credential of its own":   {[]client.Object{token, credential}, false},
	} {
		h := newAccess()
		c := &checked{access: h, Client: fake.NewClientBuilder().WithScheme(h.scheme).WithObjects(row.has...).Build()}
		if never, err := c.neverJoined(t.Context(), "agents"); err != nil || never != row.never {
			t.Errorf("%s: never joined is %t, %v", what, never, err)
		}
	}
}

func TestAMemberJoinsAgainAndIsTakenFromNobody(t *testing.T) {
	t.Parallel()
	hub, branch := withPods(t, "cli-init"), withPods(t, "cli-bough")
	admin, c := contexts(t, hub, branch), hub.Client(t)
	admin.runs("init")
	join := "join --context cli-bough --hub-context cli-init --member --name "
	// No hub is at the address, and the name is a mistake.
	admin.joinsInVain(join+"brunch --hub-url https://127.0.0.1:1", "127.0.0.1:1: connect: connection refused")
	admin.runs("leave brunch --orphan", " gone")
	admin.runs(join+"branch", "branch MemberCluster ")

	admin.refused(join+"branch --hub-url https://other:6443", "cluster cli-bough is a member of the hub at "+hub.Config.Host+
		", as MemberCluster branch: to have it join another one, muster leave branch there if it has joined, "+
		"and then helm --kube-context cli-bough -n default uninstall member-agent; or if that is this hub, use --hub-url "+hub.Config.Host)
	admin.refused(join+"other",
		"cluster cli-bough is a member already, as MemberCluster branch: use --name branch, or run muster leave branch first")
	for _, o := range []client.Object{&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: "other-hub-cluster-access"}}} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("%T is made for a member that is refused: %v", o, err)
		}
	}

	admin.runs("revoke branch")
	admin.runs("revoke branch --undo")
	admin.runs(join+"branch", "branch MemberCluster ")
	// A new MemberCluster was never revoked.
	admin.runs("leave branch --orphan", " gone")
	admin.runs(join+"branch", "MemberCluster branch is created", "branch MemberCluster ")

	// The cluster has the token of another hub.
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: memberToken.Namespace, Name: memberToken.Name}}
	elsewhere := branch.Client(t)
	admin.runs("leave branch --orphan", " gone")
	unmark := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`))
	if err := elsewhere.Patch(t.Context(), foreign, unmark); err != nil {
		t.Fatal(err)
	}
	admin.refused(join+"branch", "Secret default/hub-kubeconfig-secret on cluster cli-bough has another owner")
	if err := c.Get(t.Context(), client.ObjectKey{Name: "branch"}, &clusterv1beta1.MemberCluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("a MemberCluster is made for a cluster that is refused: %v", err)
	}

	token, _, err := admin.run("token", "create", "itself", "-n", "default", "--output", "token")
	if err != nil {
		t.Fatal(err)
	}
	admin.refused("join --context cli-init --token "+strings.TrimSpace(token)+" --hub-url "+hub.Config.Host,
		"the token belongs to a hub on cluster cli-init, and the hub is a member of itself already")
	admin.refused("migrate --from rancher-fleet --context cli-init cli-init", "the contexts cli-init and cli-init lead to the same cluster")
}

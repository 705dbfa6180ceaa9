package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// rig is a control plane with a hub under the rights of its chart.
type rig struct {
	testkube.Cluster
	client.Client
	t *testing.T
}

func newRig(t *testing.T) rig {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	r := rig{Cluster: testkube.Start(t, "cli-hub"), t: t}
	r.InstallHub(t)
	r.Client = r.Cluster.Client(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubServiceAccount}}
	token, err := kube.RequestToken(context.Background(), r.SubResource("token"), account, time.Hour)
	r.check(err)
	path := filepath.Join(t.TempDir(), "hub")
	r.check(os.WriteFile(path, r.Kubeconfig(t, token), 0o600))
	testkube.Run(t, "muster-hub", "--kubeconfig", path, "--namespace", naming.SystemNamespace,
		"--leader-elect=false", "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	r.check(client.IgnoreAlreadyExists(r.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}})))
	return r
}

func (r rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// request creates a registration request like an agent's, with approval required.
func (r rig) request(clientID string) string {
	r.t.Helper()
	ctx := context.Background()
	token := &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "asks"}, Spec: fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual},
	}
	r.check(client.IgnoreAlreadyExists(r.Create(ctx, token)))
	var secret corev1.Secret
	testkube.Eventually(r.t, "the token has values", func() error { return r.Get(ctx, client.ObjectKeyFromObject(token), &secret) })
	values := map[string]string{}
	r.check(yaml.Unmarshal(secret.Data["values"], &values))
	config := *r.Config
	config.CertData, config.KeyData, config.BearerToken = nil, nil, values["token"]
	agent, err := client.New(&config, client.Options{Scheme: r.Scheme()})
	r.check(err)
	request := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "request-", Namespace: "team", Labels: map[string]string{fleet.LabelRegistrationToken: token.Name},
		},
		Spec: fleet.ClusterRegistrationSpec{ClientID: clientID, ClientRandom: clientID},
	}
	testkube.Eventually(r.t, "the token may ask", func() error { return agent.Create(ctx, request) })
	return request.Name
}

func TestWhoIsInIsDecided(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	admin := of(t, r.Cluster, r.Account(t, "cli-admin", "cluster-admin"))

	asked := r.request("web")
	admin.says("approve "+asked, " Pending: ", " Granted\n")
	denied := r.request("stranger")
	admin.says("deny requests team/"+denied+" --reason odd", " Denied: an approver has denied this request (odd)\n")
	admin.says("approve "+denied, " Pending: ", " Granted\n")
	admin.says("approve "+denied, "ClusterRegistration team/"+denied+" is already granted.\n")
	admin.refused("deny "+asked,
		"ClusterRegistration team/"+asked+" is already granted: run muster revoke team/"+naming.Cluster("web")+" to revoke its access")
	admin.refused("approve edge", "there is no edge among the clusters, requests")

	web := naming.Cluster("web")
	admin.says("label "+web+" env=prod stage=", "Cluster team/"+web+" has the labels ", "env=prod", "stage=")
	out, _, err := admin.run("label", web, "env-", "stage-")
	if err != nil || strings.Contains(out, "env=") || strings.Contains(out, "stage=") {
		t.Errorf("labels that are taken off: %v\n%s", err, out)
	}
	admin.refused("label "+web+" env", "env is not a label: use KEY=VALUE to set one, or KEY- to remove one")
	admin.refused("label "+web+" env=a/b", "changing Cluster team/"+web, "a valid label must")
	admin.says("quarantine "+web+" --dry-run", "Cluster team/"+web+" would be quarantined.")
	admin.says("quarantine "+web+" --reason odd", "quarantined for ", "(odd): only heartbeats")
	admin.refused("drain "+web, "Cluster team/"+web+" is quarantined", "end that first with muster quarantine team/"+web+" --undo")
	admin.says("quarantine "+web+" --undo", " Awaited: waiting for an agent")
	admin.says("revoke "+web, " Revoked: revoked by annotation muster/revoked")
	admin.says("explain "+web, "Cluster team/"+web+" is Revoked.\n", "The member is revoked")
	admin.says("revoke --undo clusters team/"+web, " Revoked: ", " Awaited: ")
	admin.refused("leave team/"+web+" --delete --orphan", "none of the others can be")
	admin.says("leave team/"+web+" --orphan", "Cluster team/"+web+" is leaving.\n", " gone\n")
	admin.refused("leave team/"+web, "there is no team/"+web+" among the members")

	r.check(r.Create(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"},
		Spec: clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "edge"}}}))
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-edge", Name: "own"}}
	testkube.Eventually(t, "the member has a Work", func() error { return r.Create(ctx, work) })
	admin.refused("leave edge", "MemberCluster edge waits for a confirmation, and the input is not a terminal: use --delete to remove the "+
		"deliveries above, or --orphan to keep them")
	if says, _, _ := admin.run("leave", "edge"); !strings.Contains(says, "when it leaves (policy Delete): Work fleet-member-edge/own.") {
		t.Errorf("it says %s", says)
	}
	admin.says("revoke edge", " Revoked: ")
	admin.says("leave edge --delete", "MemberCluster edge is leaving.\n", " gone\n")

	tenant := of(t, r.Cluster, r.Account(t, "tenant", "view-members"))
	r.check(r.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "view-members"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"clusters", "clusterregistrations"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"cluster.kubernetes-fleet.io"}, Resources: []string{"memberclusters"}, Verbs: []string{"get", "list"}}}}))
	testkube.Eventually(t, "the tenant sees", func() error { _, _, err := tenant.run("get"); return err })
	stranger := naming.Cluster("stranger")
	tenant.refused("revoke "+stranger, "changing Cluster team/"+stranger, "forbidden")
	tenant.refused("quarantine "+stranger, "changing Cluster team/"+stranger, "forbidden")
	tenant.refused("leave "+stranger, "deleting Cluster team/"+stranger, "forbidden")
	tenant.refused("approve "+r.request("late"), "forbidden")
}

// TestAKindThatIsNotServedIsNotTakenForAnObjectThatIsGone deletes the CRD while a member
// leaves.
func TestAKindThatIsNotServedIsNotTakenForAnObjectThatIsGone(t *testing.T) {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "clusters"},
		"web", "404 page not found", 0, true)
	without := interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return err },
	})
	var out bytes.Buffer
	change := &changer{progress: newProgress(&out), access: newAccess(), timeout: time.Minute}
	web := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	left := change.follow(t.Context(), without, web, "gone", func(_ client.Object, gone bool) (bool, error) { return gone, nil })
	if left == nil || !strings.Contains(left.Error(), "reading the progress of Cluster team/web: ") || out.Len() > 0 {
		t.Errorf("to follow: %v\n%s", left, &out)
	}
	if removed := change.remove(t.Context(), without, web, "", false); removed == nil ||
		!strings.Contains(removed.Error(), "deleting Cluster team/web") {
		t.Errorf("to remove: %v", removed)
	}
	if shown := view.Absent(err); shown != "its kind is not served" {
		t.Errorf("a tree shows %q", shown)
	}
}

// TestAHubThatIsAwayForAWhileEndsNoWait restarts an API server while a member leaves, or stops
// it for good.
func TestAHubThatIsAwayForAWhileEndsNoWait(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "clusters"}, "web")
	for what, row := range map[string]struct {
		answers []error // the last one again and again
		wrong   string
	}{
		"it comes back": {[]error{syscall.ECONNREFUSED, io.EOF, gone}, ""},
		"it does not": {
			[]error{syscall.ECONNREFUSED}, "reading the progress of Cluster team/web timed out after 1s, and the hub continues: connection refused",
		},
		"it forbids to look": {
			[]error{apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "web", nil)}, "reading the progress of Cluster team/web: ",
		},
	} {
		hub := interceptor.NewClient(nil,
			interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				err := row.answers[0]
				row.answers = row.answers[min(1, len(row.answers)-1):]
				return err
			}})
		var out bytes.Buffer
		change := &changer{progress: newProgress(&out), access: newAccess(), timeout: time.Second}
		web := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
		err := change.follow(t.Context(), hub, web, "gone", func(_ client.Object, gone bool) (bool, error) { return gone, nil })
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) ||
			strings.Count(out.String(), "the hub does not answer") > 1 {
			t.Errorf("%s: %v\n%s", what, err, &out)
		}
	}
}

func TestTheValuesOfATokenHaveTheAddressOfTheHub(t *testing.T) {
	_, ca := testkube.NewCertificate(t)
	t.Setenv("KUBECONFIG", at(t, "https://mine:6443", []byte(ca)).kubeconfig)
	for what, row := range map[string]struct {
		values, hubURL, url, warns string
		ca                         string
	}{
		"the hub knows it": {"apiServerURL: https://known\napiServerCA: theirs\ntoken: t\n", "", "https://known", "", "theirs"},
		"it does not": {
			"apiServerURL: \"\"\napiServerCA: \"\"\ntoken: t\n", "", "https://mine:6443", "The hub does not know its own address", ca,
		},
		"the user does":          {"apiServerURL: \"\"\napiServerCA: \"\"\ntoken: t\n", "https://said", "https://said", "", ca},
		"the user knows another": {"apiServerURL: https://known\napiServerCA: theirs\ntoken: t\n", "https://said", "https://said", "", "theirs"},
	} {
		var out, said bytes.Buffer
		i := &issuer{
			IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &said}, access: newAccess(), format: formatValues, hubURL: row.hubURL,
		}
		err := i.print(&corev1.Secret{Data: map[string][]byte{bootstrap.ValuesKey: []byte(row.values)}}, "https://mine:6443")
		var got bootstrap.Bootstrap
		if err == nil {
			err = yaml.Unmarshal(out.Bytes(), &got)
		}
		if want := (bootstrap.Bootstrap{APIServerURL: row.url, APIServerCA: row.ca, Token: "t"}); err != nil || got != want ||
			!strings.HasPrefix(said.String(), row.warns) || row.warns == "" && said.Len() > 0 {
			t.Errorf("%s: %v\n%s\n%s", what, err, &out, &said)
		}
	}
	at(t, "https://mine:6443", nil).refused("token create web -o token --hub-url https://said",
		"--hub-url does not apply to --output token: it has no address")
}

func TestATokenComesWithTheLineThatRegisters(t *testing.T) {
	r := newRig(t)
	admin := of(t, r.Cluster, r.Account(t, "cli-admin", "cluster-admin"))
	const create = "token create web -n team --label env=prod --cluster web" // for one cluster and a day
	out, said, err := admin.run(strings.Fields(create)...)
	if line := "muster join --token ey"; err != nil || !strings.HasPrefix(out, line) ||
		!strings.Contains(out, " --hub-url "+r.Config.Host+" --hub-ca LS0t") || strings.Contains(out, "--client-id") {
		t.Errorf("%v\n%s\n%s", err, said, out)
	}
	out, said, err = admin.run(strings.Fields(create + " -o helm")...)
	if err != nil || !strings.HasPrefix(out,
		"helm -n cattle-fleet-system install --create-namespace --wait fleet-agent fleet/fleet-agent --set token=ey") ||
		!strings.Contains(out, " --set apiServerURL="+r.Config.Host+" --set apiServerCA=") || strings.Count(out, "\n") != 1 ||
		!strings.Contains(said, "The hub does not know its own address") {
		t.Errorf("%v\n%s\n%s", err, said, out)
	}
	again, _, err := admin.run(strings.Fields(create + " -o helm --hub-url https://hub.example.com")...)
	if want := strings.Replace(out, r.Config.Host, "https://hub.example.com", 1); err != nil || again != want {
		t.Errorf("again: %v\n%s\nnot\n%s", err, again, want)
	}
	token := &fleet.ClusterRegistrationToken{}
	r.check(r.Get(context.Background(), client.ObjectKey{Namespace: "team", Name: "web"}, token))
	if spec := token.Spec; spec.TTL.Duration != 24*time.Hour || *spec.MaxRegistrations != 1 || spec.Labels["env"] != "prod" ||
		spec.ClusterName != "web" || spec.Approval != "" {
		t.Errorf("the token is %+v", spec)
	}
	prints := func(args, fact string, want ...string) {
		t.Helper()
		out, said, err := admin.run(strings.Fields(args)...)
		if err != nil || !strings.Contains(said, fact) {
			t.Errorf("muster %s: %v, %s", args, err, said)
		}
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("muster %s prints, without %q:\n%s", args, part, out)
			}
		}
	}
	prints("token create any -n team --ttl 0 --max 0 --hub-url https://hub.example.com",
		"ClusterRegistrationToken team/any registers any number of clusters, without expiry. Run this on the cluster", "muster join --token ey")
	endless := &fleet.ClusterRegistrationToken{}
	r.check(r.Get(context.Background(), client.ObjectKey{Namespace: "team", Name: "any"}, endless))
	if endless.Spec.TTL != nil || endless.Spec.MaxRegistrations != nil {
		t.Errorf("the token without end is %+v", endless.Spec)
	}
	prints(create+" -o values --hub-url https://hub.example.com", "team/web registers 1 cluster, until ",
		"\napiServerURL: https://hub.example.com\n", "\ntoken: ey", "\ntokenName: web\n")
	prints(create+" -o token", "registers 1 cluster", "ey")
	prints("token show team/web -o helm --hub-url https://hub.example.com", "registers 1 cluster", again)
	admin.shows("token list any web -n team -o name", "token/team/any", "token/team/web")
	admin.refused("token show nothing -n team", "there is no nothing among the tokens")
	prints("token rotate any -n team --overlap 1h --hub-url https://hub.example.com", "credential 2 was issued at ", "muster join --token ey")
	admin.refused("token rotate any -n team --overlap 721h", "set a duration from 0s to 720h")
	r.check(kube.Annotate(context.Background(), r.Client, endless, map[string]any{fleet.AnnotationRotateOverlap: "soon"}))
	testkube.Eventually(t, "the token refuses the annotation", func() error {
		if err := r.Get(context.Background(), client.ObjectKeyFromObject(endless), endless); err != nil {
			return err
		}
		if reason := kube.ReasonOf(endless.Status.Conditions, fleet.ConditionRotated); reason != "InvalidRotation" {
			return fmt.Errorf("the reason is %q", reason)
		}
		return nil
	})
	prints("token rotate any -n team --overlap 0 --hub-url https://hub.example.com", "credential 3 was issued at ", "muster join --token ey")
	admin.refused("token revoke any -n team", "use --yes to delete the token")
	admin.says("token revoke any -n team --yes", "gone")
	admin.refused("token show any -n team", "there is no any among the tokens")
	admin.refused("token create web -n team --ttl 1h", "ClusterRegistrationToken team/web exists with other settings than these flags")
	admin.refused("token create web -n nowhere", "there is no namespace nowhere on "+r.Config.Host+": kubectl create namespace nowhere")
	admin.refused("token create web", "there is no namespace clusters on "+r.Config.Host)
	admin.refused("token create web -n team -o yaml", "--output yaml: it is command, helm, values or token")
	admin.refused("token create bad -n team --label fleet.cattle.io/x=y", "ClusterRegistrationToken team/bad cannot be used (InvalidLabels)")
	admin.refused("token create Web -n team", "creating ClusterRegistrationToken team/Web", "lowercase")
	nobody := of(t, r.Cluster, r.Account(t, "nobody", ""))
	nobody.refused("token create mine -n team", "creating ClusterRegistrationToken team/mine", "forbidden")
}

func TestWordsForAShellAreQuoted(t *testing.T) {
	for value, want := range map[string]string{
		"https://hub:6443": "https://hub:6443", "a b": "'a b'", "it's": `'it'\''s'`, "a,b": `'a,b'`, `a\b`: `'a\b'`, "$(rm)": "'$(rm)'", "": "''",
	} {
		if got := view.Quoted(value); got != want {
			t.Errorf("%q: %s, not %s", value, got, want)
		}
	}
	if got, want := view.Quoted(escaped(`a,b\c`)), `'a\,b\\c'`; got != want {
		t.Errorf("for Helm: %s, not %s", got, want)
	}
}

// TestAnObjectThatIsAnotherOneOfItsNameIsLeftAlone replaces an object after the lookup.
func TestAnObjectThatIsAnotherOneOfItsNameIsLeftAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	ctx, c := context.Background(), fleetOn(t, "cli-sick").Client(t)
	another := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "another"}}
	if err := c.Create(ctx, another); err != nil {
		t.Fatal(err)
	}
	found := another.DeepCopy()
	found.UID = "of-one-before"
	change := &changer{access: newAccess()}
	for name, do := range map[string]func() error{
		"annotate": func() error {
			return change.decide(ctx, c, found.DeepCopy(), decision.Revoke)
		},
		"remove": func() error { return change.remove(ctx, c, found.DeepCopy(), "", false) },
		"follow": func() error {
			change.timeout, change.progress = time.Minute, newProgress(io.Discard)
			return change.follow(ctx, c, found.DeepCopy(), "seen", func(_ client.Object, gone bool) (bool, error) {
				if !gone {
					return true, nil
				}
				return false, errors.New("Cluster team-a/another is gone")
			})
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "Cluster team-a/another") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(another), another); err != nil || len(another.Annotations) > 0 ||
		another.DeletionTimestamp != nil {
		t.Errorf("it is changed: %v, %v", another.ObjectMeta, err)
	}
	if err := c.Delete(ctx, another); err != nil {
		t.Fatal(err)
	}
}

package cli

import (
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/fleet/standby"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// restoring is a hub with a backup, and another cluster.
type restoring struct {
	t          *testing.T
	from, onto client.Client
	target     testkube.Cluster
	admin      user
	// command restores the backup with its key.
	command string
}

func (r restoring) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// placer is the author of a placement, with rights for placements only.
const placer = "placer"

// mayPlace gives the author the rights.
func (r restoring) mayPlace(on client.Client) {
	r.t.Helper()
	meta := metav1.ObjectMeta{Name: "may-place"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	r.check(client.IgnoreAlreadyExists(on.Create(context.Background(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})))
	r.check(client.IgnoreAlreadyExists(on.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "may-place"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: placer}},
	})))
}

// newRestoring backs up a hub with a placement of another author, an owned Bundle, two tokens with
// an end, and statuses that the hub cannot compute again.
func newRestoring(t *testing.T) restoring {
	if testing.Short() {
		t.Skip("it needs two control planes")
	}
	source := toBackUp(t)
	source.InstallHub(t)
	r := restoring{t: t, from: source.Client(t), target: testkube.Turn(t, "cli-restored")}
	r.onto, r.admin = r.target.Client(t), of(t, r.target, r.target.Account(t, "cli-admin", "cluster-admin"))
	ctx := context.Background()
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team-a", Name: name} }
	repo := &fleet.GitRepo{ObjectMeta: in("repo"), Spec: fleet.GitRepoSpec{Repo: "https://git.example.com/shop"}}
	ends, ended := &fleet.ClusterRegistrationToken{ObjectMeta: in("ends")}, &fleet.ClusterRegistrationToken{ObjectMeta: in("ended")}
	ends.Spec.TTL, ended.Spec.TTL = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: time.Second}
	revoked := &fleet.Cluster{ObjectMeta: in("revoked")}
	revoked.Annotations = map[string]string{clusterv1beta1.AnnotationRevoked: "true", "muster/member-epoch": "3"}
	for _, o := range []client.Object{repo, ends, ended, revoked} {
		r.check(r.from.Create(ctx, o))
	}
	owned := &fleet.Bundle{ObjectMeta: in("owned")}
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(repo, fleet.GroupVersion.WithKind("GitRepo"))}
	r.check(r.from.Create(ctx, owned))
	r.mayPlace(r.from)
	config := rest.CopyConfig(source.Config)
	config.Impersonate.UserName = placer
	as, err := client.New(config, client.Options{Scheme: r.from.Scheme()})
	r.check(err)
	r.check(as.Create(ctx, &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: placement.PlacementSpec{ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "shop"}}}}))
	status := func(o client.Object, text string) {
		t.Helper()
		r.check(r.from.Status().Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(text))))
	}
	status(ends, `{"status":{"clusters":["web"],"secretName":"ends"}}`)
	status(revoked, `{"status":{"history":[{"time":"2026-01-02T03:04:05Z","reason":"Joined"}],"namespace":"gone",
		"conditions":[{"type":"Ready","status":"False"},{"type":"example.com/Checked","status":"True"}]}}`)

	r.putIdentity(r.from, 3)
	key, err := age.GenerateX25519Identity()
	r.check(err)
	file, identity := filepath.Join(t.TempDir(), "hub.age"), filepath.Join(t.TempDir(), "key.txt")
	r.check(os.WriteFile(identity, []byte(key.String()), 0o600))
	time.Sleep(time.Until(ended.CreationTimestamp.Add(2 * time.Second))) // until the token has ended
	admin := of(t, source, source.Account(t, "cli-admin", "cluster-admin"))
	admin.says("backup -o "+file+" --recipient "+key.Recipient().String(), "written in")
	r.command = "restore " + file + " --identity " + identity
	return r
}

func TestAHubIsRestoredOnAnotherCluster(t *testing.T) {
	r := newRestoring(t)
	ctx := context.Background()
	r.admin.refused(r.command, "it is not a hub; install the hub with muster init")
	none := filepath.Join(t.TempDir(), "none.age")
	r.admin.refused("backup -o "+none+" --passphrase-file "+strings.Fields(r.command)[3], "the cluster serves no fleet: it is not a hub")
	if _, err := os.Stat(none); !os.IsNotExist(err) {
		t.Errorf("a backup of no hub leaves a file: %v", err)
	}
	r.target.InstallHub(t)
	r.admin.cacheDir = t.TempDir()
	r.putIdentity(r.onto, 7) // the identity of the new hub, from its first start
	r.refusals()

	out, said, err := r.admin.run(strings.Fields(r.command)...)
	if err == nil || !strings.Contains(out, "creating ClusterResourcePlacement shop in the name of its author placer") ||
		!strings.Contains(said, "1 objects could not be restored") {
		t.Errorf("with an author without rights: %v\n%s%s", err, out, said)
	}
	r.mayPlace(r.onto)
	r.interrupted()
	r.admin.says(r.command, "1 objects of the backup", "1 placements are paused", "Start the hub: ", "and term 4. Members")
	r.admin.says(r.command, "\n0 objects of the backup")
	r.compare()

	shop := &placement.ClusterResourcePlacement{}
	r.check(r.onto.Get(ctx, client.ObjectKey{Name: "shop"}, shop))
	if got := shop.Annotations[author.AnnotationName]; got != placer {
		t.Errorf("the restored placement has the author %q", got)
	}
	// a change of a user stays, and what was deleted since comes back
	web := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}}
	r.check(r.onto.Get(ctx, client.ObjectKeyFromObject(web), web))
	web.Labels["env"] = "changed"
	r.check(r.onto.Update(ctx, web))
	r.check(r.onto.Delete(ctx, &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "app"}}))
	r.admin.says(r.command, "1 objects of the backup")
	r.check(r.onto.Get(ctx, client.ObjectKeyFromObject(web), web))
	if web.Labels["env"] != "changed" {
		t.Errorf("a second restore has set the labels %v", web.Labels)
	}
	before, after := r.identity(r.from), r.identity(r.onto)
	if !after.SameKey(before) || before.Term != 3 || after.Term != 4 {
		t.Errorf("the hub has term %d, and the restored one %d, with the same key: %t", before.Term, after.Term, after.SameKey(before))
	}
	r.foreignRight()
}

// foreignRight changes the binding and the Role of the standby's right, as a tenant can.
func (r restoring) foreignRight() {
	r.t.Helper()
	role, binding := standby.Access("team-a", naming.SystemNamespace)
	r.check(r.onto.Get(context.Background(), client.ObjectKeyFromObject(binding), binding))
	binding.Subjects[0].Namespace = "team-a"
	r.check(r.onto.Update(context.Background(), binding))
	const another = "register in workspace team-a: there is another "
	r.admin.refused(r.command, another+"RoleBinding fleet-standby: delete it, and run the command again")
	r.check(r.onto.Get(context.Background(), client.ObjectKeyFromObject(role), role))
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	r.check(r.onto.Update(context.Background(), role))
	r.admin.refused(r.command, another+"Role fleet-standby: delete it, and run the command again")
}

// interrupted ends a restore after some of its writes, as a user does.
func (r restoring) interrupted() {
	r.t.Helper()
	const written = 40
	r.check(r.onto.DeleteAllOf(context.Background(), &fleet.ClusterGroup{}, client.InNamespace("team-b")))
	there := func() int {
		r.t.Helper()
		var groups fleet.ClusterGroupList
		r.check(r.onto.List(context.Background(), &groups, client.InNamespace("team-b")))
		return len(groups.Items)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var writes atomic.Int32
	until := r.target.Disguise(r.t, "interrupted", func(request *http.Request) {
		if request.Method == http.MethodPost && path.Base(request.URL.Path) == "clustergroups" && writes.Add(1) > written {
			cancel()
			panic(http.ErrAbortHandler) // no later write reaches the API server
		}
	})
	command := strings.Fields(r.command)
	_, said, err := of(r.t, until, r.target.Account(r.t, "cli-admin", "cluster-admin")).runIn(ctx, command...)
	if count := there(); err == nil || !strings.Contains(said, "you can run the command again") || count == 0 || count > written {
		r.t.Errorf("an interrupted restore leaves %d ClusterGroups: %v\n%s", count, err, said)
	}
	out, said, err := r.admin.run(command...)
	if count := there(); err != nil || count != 130 {
		r.t.Errorf("after an interrupted restore there are %d ClusterGroups: %v\n%s%s", count, err, out, said)
	}
	r.check(r.onto.Delete(context.Background(), &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
}

// refusals has a hub that runs, a hub with a member, a user without rights, and another key.
func (r restoring) refusals() {
	r.t.Helper()
	ctx := context.Background()
	none := func(why string) {
		r.t.Helper()
		var made fleet.BundleList
		if r.check(r.onto.List(ctx, &made)); len(made.Items) > 0 {
			r.t.Errorf("%s: %d Bundles were restored", why, len(made.Items))
		}
	}
	own := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "own"},
	}}
	r.check(r.onto.Create(ctx, own))
	r.admin.refused(r.command, "the hub has 1 members of its own, such as MemberCluster own", "--merge")
	none("with a member of its own")
	now, holder, seconds := metav1.NowMicro(), "hub-1_x", int32(600)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: naming.HubLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds}}
	r.check(r.onto.Create(ctx, lease))
	r.admin.refused(r.command+" --merge", "a hub runs on", "hub-1 leads", "scale deployment fleet-controller --replicas=0")
	none("beside a running hub")
	r.check(r.onto.Delete(ctx, own))
	r.check(r.onto.Delete(ctx, lease))

	key, err := age.GenerateX25519Identity()
	r.check(err)
	other := filepath.Join(r.t.TempDir(), "other.txt")
	r.check(os.WriteFile(other, []byte(key.String()), 0o600))
	file := strings.Fields(r.command)[1]
	r.admin.refused("restore "+file+" --identity "+other, "it is encrypted for another key")
	text, err := os.ReadFile(file)
	r.check(err)
	cut := filepath.Join(r.t.TempDir(), "cut.age")
	r.check(os.WriteFile(cut, text[:len(text)-100], 0o600))
	r.admin.refused(strings.Replace(r.command, file, cut, 1), "reading the backup")
	none("with another key or half of the file")
	r.admin.refused(strings.Replace(r.command, file, r.forged(), 1), "no backup has this kind", "check who wrote the file")
	none("with a file of a stranger")
	r.check(client.IgnoreAlreadyExists(r.onto.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sees-clusters"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"clusters"}, Verbs: []string{"list"}}}})))
	tenant := of(r.t, r.target, r.target.Account(r.t, "cli-tenant", "sees-clusters"))
	tenant.refused(r.command, "forbidden")
	none("without rights")
}

// forged is a file of a stranger who has the public key. It would make a tenant an administrator.
func (r restoring) forged() string {
	r.t.Helper()
	text, err := os.ReadFile(strings.Fields(r.command)[3])
	r.check(err)
	key, err := age.ParseX25519Identity(string(text))
	r.check(err)
	forged := filepath.Join(r.t.TempDir(), "forged.age")
	file, err := os.Create(forged)
	r.check(err)
	encrypted, err := age.Encrypt(file, key.Recipient())
	r.check(err)
	packed := gzip.NewWriter(encrypted)
	_, err = packed.Write([]byte(`{"header":{"format":"muster-backup/1","id":"1"}}
{"object":{"apiVersion":"fleet.cattle.io/v1alpha1","kind":"Bundle","metadata":{"namespace":"team-a","name":"forged"}}}
{"object":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"forged"}}}
{"end":{"objects":2}}
`))
	r.check(errors.Join(err, packed.Close(), encrypted.Close(), file.Close()))
	return forged
}

// compare compares the restored objects with the ones of the backup.
func (r restoring) compare() {
	r.t.Helper()
	ctx := context.Background()
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "git"}},
		&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "web"}},
		&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "revoked"}},
		&fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "group-129"}},
		&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
	} {
		restored := o.DeepCopyObject().(client.Object)
		r.check(r.from.Get(ctx, client.ObjectKeyFromObject(o), o))
		r.check(r.onto.Get(ctx, client.ObjectKeyFromObject(o), restored))
		annotations := restored.GetAnnotations()
		if annotations[backup.AnnotationRestored] == "" {
			r.t.Errorf("%s has no mark of the backup", o.GetName())
		}
		delete(annotations, backup.AnnotationRestored)
		for _, all := range []map[string]string{annotations, o.GetAnnotations()} { // the policies name the user of the restore
			delete(all, clusterv1beta1.AnnotationRevokedBy)
			delete(all, clusterv1beta1.AnnotationIdentityBy)
		}
		if diff := cmp.Diff([]map[string]string{o.GetLabels(), o.GetAnnotations()}, []map[string]string{restored.GetLabels(), annotations},
			cmpopts.EquateEmpty()); diff != "" {
			r.t.Errorf("%s (-want +got):\n%s", o.GetName(), diff)
		}
	}
	var git corev1.Secret
	r.check(r.onto.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "git"}, &git))
	if string(git.Data["password"]) != secretValue {
		r.t.Error("the Secret has another value")
	}
	var revoked fleet.Cluster
	r.check(r.onto.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "revoked"}, &revoked))
	if s := revoked.Status; len(s.History) != 1 || s.Namespace != "" || len(s.Conditions) != 1 ||
		s.Conditions[0].Type != "example.com/Checked" {
		r.t.Errorf("the status of the Cluster is %+v", s)
	}
	var owned fleet.Bundle
	var repo fleet.GitRepo
	r.check(r.onto.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "owned"}, &owned))
	r.check(r.onto.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "repo"}, &repo))
	if owner := metav1.GetControllerOf(&owned); owner == nil || owner.UID != repo.UID {
		r.t.Errorf("the Bundle belongs to %v, not to the restored GitRepo", owner)
	}
	var ends fleet.ClusterRegistrationToken
	r.check(r.onto.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "ends"}, &ends))
	if ttl := ends.Spec.TTL; ttl == nil || ttl.Duration >= time.Hour || ttl.Duration < 50*time.Minute || len(ends.Status.Clusters) != 1 {
		r.t.Errorf("the token lives for %v, and was used for %v", ends.Spec.TTL, ends.Status.Clusters)
	}
	if err := r.onto.Get(ctx, client.ObjectKey{Namespace: "team-a", Name: "ended"}, &ends); !apierrors.IsNotFound(err) {
		r.t.Errorf("the token that had ended lives again: %v", err)
	}
}

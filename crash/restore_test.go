package crash

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	audit "github.com/muster-fleet/muster/api/muster/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// placer is the author of the placement of a lost hub.
const placer = "placer"

// loss is what a run knows of its lost hub.
type loss struct {
	// command restores the hub.
	command []string
	// delivered is the object that was delivered before the loss.
	delivered types.UID
	// foreign is an object of a user on the cluster of the restored hub.
	foreign *corev1.Secret
	// key is the key of the agent of a MemberCluster, and server the address of the lost hub.
	key    credential.AgentKey
	server string
}

// mayPlace gives the author of a placement the rights.
func (in *run) mayPlace(on client.Client) {
	in.t.Helper()
	meta := metav1.ObjectMeta{Name: "may-place"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	in.check(client.IgnoreAlreadyExists(on.Create(context.Background(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})))
	in.check(client.IgnoreAlreadyExists(on.Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: placer}},
	})))
}

// lostHub joins a Cluster with a delivered Bundle, adds objects of all sorts, backs up the hub, and
// cuts it off. From then on the hub of the run is the spare.
func (in *run) lostHub() {
	in.t.Helper()
	link := testkube.NewLink(in.t, in.hubFront.Config.Host)
	in.hubFront.Config = rest.CopyConfig(in.hubFront.Config)
	in.hubFront.Config.Host = link.URL
	in.clusterThatDelivers()
	in.rollOut()
	in.fillHub()
	delivered := in.deliveredUID()
	file, key := in.backUp()
	link.Become(testkube.Quality{Cut: true})

	s := in.installSpare()
	in.t.Cleanup(func() { in.emptySpare(s) })
	in.at, in.Client = s.Cluster, s.Client(in.t)
	there := in.rememberObjects()
	for uid := range in.known.uids {
		there.uids[uid] = true
	}
	for _, p := range in.read()[1:] {
		for _, o := range p.objects {
			if !in.known.uids[o.GetUID()] {
				delete(there.uids, o.GetUID()) // the run has made it
			}
		}
	}
	in.known = there
	in.create(in.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.id}})
	in.lost = loss{delivered: delivered, foreign: &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "kept"}, StringData: map[string]string{"a": "of another"},
	}}
	in.create(in.Client, in.lost.foreign)
	reach := in.wire.front(in.t, s.Cluster, func(*http.Request) string { return restore })
	in.lost.command = []string{"restore", file, "--identity", key, "--cache-dir", in.t.TempDir(),
		"--kubeconfig", in.kubeconfig(in.t, reach, bearer(in.t, in.Client, metav1.NamespaceDefault, "admin"))}
}

// fillHub creates an object of each sort that a restore treats in its own way.
func (in *run) fillHub() {
	in.t.Helper()
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: in.id, Name: name} }
	repo := &fleet.GitRepo{ObjectMeta: at("repo"), Spec: fleet.GitRepoSpec{Repo: in.sourceAddress, Paused: true}}
	for _, o := range []client.Object{
		repo, &fleet.ClusterGroup{ObjectMeta: at("group")}, &corev1.Secret{ObjectMeta: at("git")}, &corev1.Secret{ObjectMeta: at("kept")},
	} {
		in.create(in.Client, o)
	}
	owned := &fleet.Bundle{ObjectMeta: at("owned")}
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(repo, fleet.GroupVersion.WithKind("GitRepo"))}
	in.create(in.Client, owned)
	in.identity()
	in.create(in.Client, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: in.id}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: in.id, Namespace: naming.MemberSystemNamespace},
	}})
	in.mayPlace(in.Client)
	config := rest.CopyConfig(in.hub.Config)
	config.Impersonate.UserName = placer
	as, err := client.New(config, client.Options{Scheme: in.Client.Scheme()})
	in.check(err)
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: in.id}}
	crp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: in.shop()}}
	crp.Spec.Policy = &placement.PlacementPolicy{PlacementType: "PickFixed", ClusterNames: []string{in.id}} // its status names no other run
	in.create(as, crp)
	in.eventually("the audit has the MemberCluster", func() error {
		var entries audit.AuditEntryList
		if err := in.List(context.Background(), &entries, client.InNamespace(naming.SystemNamespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(entries.Items, func(e audit.AuditEntry) bool { return e.Spec.Object.Name == in.id }) {
			return fmt.Errorf("it has %d entries", len(entries.Items))
		}
		return nil
	})
}

// backUp writes the backup of a hub that has only the objects of this run, with its key.
func (in *run) backUp() (file, key string) {
	in.t.Helper()
	identity, err := age.GenerateX25519Identity()
	in.check(err)
	var all bytes.Buffer
	_, err = backup.Take(context.Background(), in.hub.Config, backup.Options{Recipients: []age.Recipient{identity.Recipient()}}, &all)
	in.check(err)
	opened, err := age.Decrypt(&all, identity)
	in.check(err)
	unpacked, err := gzip.NewReader(opened)
	in.check(err)
	text, err := io.ReadAll(unpacked)
	in.check(err)
	var own bytes.Buffer
	encrypted, err := age.Encrypt(&own, identity.Recipient())
	in.check(err)
	packed, objects := gzip.NewWriter(encrypted), 0
	for line := range strings.Lines(string(text)) {
		var parts map[string]json.RawMessage
		in.check(json.Unmarshal([]byte(line), &parts))
		switch {
		case parts["end"] != nil:
			line = fmt.Sprintf("{\"end\":{\"objects\":%d}}\n", objects)
		case parts["object"] == nil: // the header
		case !in.own(line):
			continue
		default:
			objects++
		}
		_, err := io.WriteString(packed, line)
		in.check(err)
	}
	in.check(packed.Close())
	in.check(encrypted.Close())
	file, key = filepath.Join(in.t.TempDir(), "hub.age"), filepath.Join(in.t.TempDir(), "key.txt")
	in.check(os.WriteFile(file, own.Bytes(), 0o600))
	in.check(os.WriteFile(key, []byte(identity.String()), 0o600))
	return file, key
}

// deliveredUID is the UID of the object of the Bundle.
func (in *run) deliveredUID() types.UID {
	in.t.Helper()
	var found corev1.ConfigMap
	in.check(in.on.Get(context.Background(), client.ObjectKey{Namespace: "web-" + in.id, Name: "delivered"}, &found))
	return found.UID
}

// restoreHub restores the hub, starts it, and gives the agent a token of it. All that the agent has
// delivered stays.
func (in *run) restoreHub() {
	in.t.Helper()
	in.repeatRestore()
	in.untouched()
	in.startHub(in.at)
	in.giveToken(in.rig.spare.front)
	in.untilTrue(fleet.ConditionReady)
	in.eventually("the agent has forgotten the token", func() error {
		token := client.ObjectKey{Namespace: in.agentNamespace(), Name: naming.AgentBootstrapSecret}
		if err := in.on.Get(context.Background(), token, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	in.untilDelivered(&fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "web"}}, "")
	if uid := in.deliveredUID(); uid != in.lost.delivered {
		in.t.Errorf("the delivered object has the UID %s, and had %s", uid, in.lost.delivered)
	}
}

// repeats is how often a user repeats a restore at most, after one fault.
const repeats = 2

// repeatRestore repeats the command until it succeeds.
func (in *run) repeatRestore() {
	in.t.Helper()
	command := in.run(in.t, restore, "muster", nil, in.lost.command...)
	for attempt := 0; ; attempt++ {
		in.eventually("muster restore ends", func() error {
			if !command.Ended() {
				return fmt.Errorf("it says %s", command.Log())
			}
			return nil
		})
		if strings.Contains(command.Log(), "Start the hub: ") {
			return
		}
		if attempt == repeats {
			in.t.Fatalf("muster restore fails after %d repetitions", repeats)
		}
		command.Start()
	}
}

// untouched checks what a restore must not change, and the term of the restored hub.
func (in *run) untouched() {
	in.t.Helper()
	var kept, identity corev1.Secret
	in.check(in.get(&kept, in.id, "kept"))
	if kept.ResourceVersion != in.lost.foreign.ResourceVersion {
		in.t.Error("the restore has changed the Secret of another user")
	}
	in.check(in.get(&identity, naming.SystemNamespace, naming.HubIdentitySecret))
	own, err := term.FromSecret(&identity)
	in.check(err)
	in.check(in.hub.Client(in.t).Get(context.Background(), client.ObjectKeyFromObject(&identity), &identity))
	before, err := term.FromSecret(&identity)
	in.check(err)
	if !own.SameKey(before) || own.Term != before.Term+1 {
		in.t.Errorf("the restored hub has term %d, and the lost one %d; the same key: %t", own.Term, before.Term, own.SameKey(before))
	}
	var clusters fleet.ClusterList
	in.check(in.List(context.Background(), &clusters, client.InNamespace(in.id)))
	if len(clusters.Items) != 1 {
		in.t.Errorf("the restored hub has %d Clusters", len(clusters.Items))
	}
	member := &clusterv1beta1.MemberCluster{}
	in.check(in.get(member, "", in.id))
	in.check(in.Delete(context.Background(), member)) // without an agent, its state would change for minutes
}

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/testkube"
)

// secretValue is the content of a Secret in a backup.
const secretValue = "never-in-plain-text"

// toBackUp adds to a fleet objects of a user, and objects that others write again.
func toBackUp(t *testing.T) testkube.Cluster {
	cluster := fleetOn(t, "cli-backup")
	meta := func(namespace, name string, labels ...string) metav1.ObjectMeta {
		o := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			o.Labels[key] = value
		}
		return o
	}
	const member = "cluster-team-a-web"
	account := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "fleet-system", Name: "shop"}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: meta("", "fleet-system")}, &corev1.Namespace{ObjectMeta: meta("", member, fleet.LabelManaged+"=true")},
		&corev1.Namespace{ObjectMeta: meta("", "elsewhere")},
		&corev1.ServiceAccount{ObjectMeta: meta("fleet-system", "shop")}, &corev1.ServiceAccount{ObjectMeta: meta("fleet-system", "other")},
		&clusterv1beta1.MemberCluster{ObjectMeta: meta("", "shop"), Spec: clusterv1beta1.MemberClusterSpec{Identity: account}},
		&clusterv1beta1.InternalMemberCluster{ObjectMeta: meta(member, "web"), Spec: clusterv1beta1.InternalMemberClusterSpec{
			State: clusterv1beta1.ClusterStateJoin,
		}},
		&fleet.Bundle{ObjectMeta: meta("team-a", "app")}, &fleet.Bundle{ObjectMeta: meta("team-a", "fleet-agent-web", fleet.LabelAgent+"=1")},
		&corev1.Secret{ObjectMeta: meta("team-a", "git"), StringData: map[string]string{"password": secretValue}},
		&corev1.Secret{ObjectMeta: meta("team-a", "release"), Type: "helm.sh/release.v1"},
		&corev1.Secret{ObjectMeta: meta("team-a", "values"), Type: fleet.SecretTypeValues},
		&corev1.Secret{ObjectMeta: meta("elsewhere", "not-of-the-fleet")},
	}
	for i := range 130 { // more than a page
		objects = append(objects, &fleet.ClusterGroup{ObjectMeta: meta("team-b", fmt.Sprintf("group-%03d", i))})
	}
	for _, o := range objects {
		if err := client.IgnoreAlreadyExists(cluster.Client(t).Create(context.Background(), o)); err != nil {
			t.Fatal(err)
		}
	}
	return cluster
}

// inFile returns the objects of a backup as KIND NAMESPACE/NAME.
func inFile(t *testing.T, file string, key age.Identity) (names []string) {
	t.Helper()
	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	_, err = backup.Read(opened, []age.Identity{key}, func(_ backup.Header, o *unstructured.Unstructured) error {
		names = append(names, strings.Replace(o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName(), " /", " ", 1))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestABackupHasAllThatUsersWroteAndNothingElse(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := toBackUp(t)
	admin := of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin"))
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	file, by := filepath.Join(directory, "hub.age"), " --recipient "+key.Recipient().String()
	admin.says("backup -o "+file+by, "130 clustergroups.fleet.cattle.io", file+" has ", "written in")
	text, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || bytes.Contains(text, []byte(secretValue)) {
		t.Errorf("the file has the mode %v and the Secret in plain text: %t (%v, %v)", info.Mode(),
			bytes.Contains(text, []byte(secretValue)), err, statErr)
	}
	got := inFile(t, file, key)
	for _, want := range []string{
		"Namespace team-a", "Namespace team-b", "Namespace fleet-system", "ServiceAccount fleet-system/shop", "Cluster team-a/web",
		"Cluster team-b/web", "MemberCluster edge", "MemberCluster shop", "Bundle team-a/app", "Secret team-a/git",
		"ClusterGroup team-b/group-000", "ClusterGroup team-b/group-129", "InternalMemberCluster cluster-team-a-web/web",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("the backup has no %s", want)
		}
	}
	for _, name := range got {
		for _, never := range []string{"cluster-team-a-web", "fleet-agent-web", "release", "values", "elsewhere", "other", "kube-system"} {
			if strings.HasSuffix(name, never) && name != "InternalMemberCluster cluster-team-a-web/web" {
				t.Errorf("the backup has %s", name)
			}
		}
	}
	admin.refused("backup -o "+file+by, "exists already, and is not replaced")
	admin.refused("backup -o other.age", "always encrypted")
	admin.refused("backup"+by, "--output is required")
	bare := filepath.Join(directory, "bare.age")
	admin.says("backup --without-secrets -o "+bare+by, "The file has no Secrets")
	for _, name := range inFile(t, bare, key) {
		if strings.HasPrefix(name, "Secret ") {
			t.Errorf("the backup without Secrets has %s", name)
		}
	}
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v: %v", entries, err)
	}
}

// TestABackupNeedsTheRightsOfItsUser: nothing is read with other rights, and nothing is written
// without all of them.
func TestABackupNeedsTheRightsOfItsUser(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := toBackUp(t)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{
			"fleet.cattle.io", "cluster.kubernetes-fleet.io", "placement.kubernetes-fleet.io", "muster-fleet.github.io",
		}, Resources: []string{"*"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces", "serviceaccounts"}, Verbs: []string{"get", "list"}},
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all-but-secrets"}, Rules: rules}
	if err := client.IgnoreAlreadyExists(cluster.Client(t).Create(context.Background(), role)); err != nil {
		t.Fatal(err)
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	command := "backup -o " + filepath.Join(directory, "hub.age") + " --recipient " + key.Recipient().String()
	tenant := of(t, cluster, cluster.Account(t, "cli-tenant", "sees-clusters"))
	tenant.refused(command, "reading the namespace kube-system", "forbidden")
	some := of(t, cluster, cluster.Account(t, "cli-some", "all-but-secrets"))
	some.refused(command, "you may not list secrets in namespace cattle-fleet-system (the key of the hub), secrets in namespace team-a, "+
		"secrets in namespace team-b", "--without-secrets")
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 0 {
		t.Errorf("a failed backup leaves %v: %v", entries, err)
	}
	some.says(command+" --without-secrets", "The file has no Secrets")
}

// TestABackupIsOfOneMoment writes pairs of objects during backups: the second of a pair is never
// there without the first, although the first kind is read before.
func TestABackupIsOfOneMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	cluster := toBackUp(t)
	admin := of(t, cluster, cluster.Account(t, "cli-admin", "cluster-admin"))
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	const pairs = 300
	written, c := make(chan error, 1), cluster.Client(t)
	go func() {
		var err error
		for i := 0; i < pairs && err == nil; i++ {
			meta := metav1.ObjectMeta{Namespace: "team-b", Name: fmt.Sprintf("pair-%04d", i)}
			if err = c.Create(context.Background(), &fleet.ClusterRegistrationToken{ObjectMeta: meta}); err == nil {
				err = c.Create(context.Background(), &fleet.Cluster{ObjectMeta: meta})
			}
		}
		written <- err
	}()
	for during := false; ; {
		file := filepath.Join(t.TempDir(), "hub.age")
		admin.says(fmt.Sprintf("backup -o %s --recipient %s", file, key.Recipient()), "written in")
		names, found := inFile(t, file, key), 0
		for _, name := range names {
			if of, pair := strings.CutPrefix(name, "Cluster team-b/pair-"); pair {
				found++
				if !slices.Contains(names, "ClusterRegistrationToken team-b/pair-"+of) {
					t.Errorf("a backup has %s without what was written before", name)
				}
			}
		}
		during = during || found > 0 && found < pairs
		select {
		case err := <-written:
			if err != nil || !during {
				t.Errorf("a backup was taken between the writes: %t (%v)", during, err)
			}
			return
		default:
		}
	}
}

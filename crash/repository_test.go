package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// pollingInterval is the time between two looks at the repository.
const pollingInterval = time.Second

// clusterWithGitOps joins a Cluster, and starts the program that reads repositories.
func (in *run) clusterWithGitOps() {
	in.t.Helper()
	in.clusterThatDelivers()
	reach := in.wire.front(in.t, in.hub, func(*http.Request) string { return gitops })
	in.run(in.t, gitops, "muster-hub", nil, "gitops", "--kubeconfig",
		in.kubeconfig(in.t, reach, bearer(in.t, in.Client, naming.SystemNamespace, naming.GitOpsAccount)),
		"--namespace", naming.SystemNamespace, "--leader-elect=false", "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
		"--allow-loopback", "--directory", in.t.TempDir())
}

// push makes a commit with these directories on the branch of the run, and returns it.
func (in *run) push(directories ...string) string {
	in.t.Helper()
	in.source.Clear()
	files := map[string]string{}
	for _, directory := range directories {
		files[directory+"/fleet.yaml"] = "defaultNamespace: " + in.ofDirectory(directory) + "\n"
		files[directory+"/object.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + directory + "}\ndata: {of: " + in.id + "}\n"
	}
	in.source.Write(files)
	return in.source.Push(in.id)
}

// follow creates a GitRepo, waits until it is delivered, and pushes a commit without one directory
// and with another. The directory in both commits keeps its objects all the time.
func (in *run) follow() {
	in.t.Helper()
	commit := in.push("a", "b")
	repo := in.gitRepo()
	repo.Spec = fleet.GitRepoSpec{Repo: in.sourceAddress, Branch: in.id, CABundle: in.sourceCA,
		PollingInterval: &metav1.Duration{Duration: pollingInterval},
		Targets:         []fleet.GitTarget{{ClusterSelector: &metav1.LabelSelector{}}}}
	in.create(in.Client, repo)
	in.untilAt(commit)
	kept := in.uids("a")
	in.untilAt(in.push("a", "c"))
	in.eventually("directory b is gone", func() error { return in.gone("b") })
	for name, uid := range in.uids("a") {
		if kept[name] != uid {
			in.t.Errorf("%s was created again", name)
		}
	}
}

func (in *run) gitRepo() *fleet.GitRepo {
	return &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "web"}}
}

// untilAt waits until all Bundles of a commit are ready.
func (in *run) untilAt(commit string) {
	in.t.Helper()
	in.eventually("the GitRepo is ready at its commit", func() error {
		repo := in.gitRepo()
		if err := in.Get(context.Background(), client.ObjectKeyFromObject(repo), repo); err != nil {
			return err
		}
		if ready := kube.FindCondition(repo.Status.Conditions, fleet.ConditionReady); repo.Status.Commit != commit || ready == nil ||
			ready.Status != corev1.ConditionTrue {
			return fmt.Errorf("its status is %+v", repo.Status)
		}
		return nil
	})
}

// ofDirectory is the namespace of a directory on the member.
func (in *run) ofDirectory(directory string) string { return "web-" + in.id + "-" + directory }

// objectsOf names all objects of a directory: on the hub, and on the member.
func (in *run) objectsOf(directory string) map[client.Object]client.Client {
	name := "web-" + directory
	return map[client.Object]client.Client{
		&fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: name}}: in.Client,
		&fleet.BundleDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberNamespace(in.id, naming.Cluster(in.id)), Name: name}}: in.Client,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in.ofDirectory(directory), Name: directory}}: in.on,
	}
}

func (in *run) uids(directory string) map[string]types.UID {
	in.t.Helper()
	found := map[string]types.UID{}
	for o, on := range in.objectsOf(directory) {
		in.check(on.Get(context.Background(), client.ObjectKeyFromObject(o), o))
		found[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetUID()
	}
	return found
}

// gone returns an error as long as there is an object of a directory.
func (in *run) gone(directories ...string) error {
	var left []error
	for _, directory := range directories {
		for o, on := range in.objectsOf(directory) {
			if err := on.Get(context.Background(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				left = append(left, fmt.Errorf("%T %s is still there: %w", o, o.GetName(), err))
			}
		}
	}
	return errors.Join(left...)
}

func (in *run) clusterThatFollows() {
	in.t.Helper()
	in.clusterWithGitOps()
	in.follow()
}

// unfollow deletes the GitRepo, and waits until nothing of it is left.
func (in *run) unfollow() {
	in.t.Helper()
	in.check(in.Delete(context.Background(), in.gitRepo()))
	in.eventually("the Bundles are gone", func() error { return in.gone("a", "c") })
}

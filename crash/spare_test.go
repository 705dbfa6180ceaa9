package crash

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// spare is a control plane for the restore of a hub. Another hub has run there, as after an
// installation.
type spare struct {
	testkube.Cluster
	// front is the spare as its agents reach it.
	front testkube.Cluster
	// installed are the objects from before the first restore, identity is the one of the hub.
	installed map[types.UID]bool
	identity  *corev1.Secret
}

// installSpare installs a hub on the spare, once, and runs it until it has its identity.
func (in *run) installSpare() *spare {
	in.t.Helper()
	if in.rig.spare != nil {
		return in.rig.spare
	}
	s := &spare{Cluster: testkube.Start(in.whole, "spare"), installed: map[types.UID]bool{}, identity: &corev1.Secret{}}
	s.InstallHub(in.whole)
	s.front = in.wire.front(in.whole, s.Cluster, atHub)
	s.Account(in.whole, "admin", "cluster-admin")
	in.mayPlace(s.Client(in.t))
	in.startHub(s.Cluster)
	in.eventually("the hub of the spare works", func() error {
		ctx, on := context.Background(), s.Client(in.t)
		if err := on.Get(ctx, client.ObjectKey{Name: naming.MemberSystemNamespace}, &corev1.Namespace{}); err != nil {
			return err
		}
		return on.Get(ctx, client.ObjectKey{Namespace: naming.SystemNamespace, Name: naming.HubIdentitySecret}, s.identity)
	})
	in.endHub()
	for _, o := range list(in, s.Client(in.t), kinds(in, s.Cluster)) {
		s.installed[o.GetUID()] = true
	}
	in.rig.spare = s
	return s
}

// startHub starts the hub of the spare.
func (in *run) startHub(on testkube.Cluster) {
	in.t.Helper()
	reach := in.wire.front(in.t, on, func(*http.Request) string { return restored })
	in.run(in.t, restored, "muster-hub", nil, "--kubeconfig",
		in.kubeconfig(in.t, reach, bearer(in.t, on.Client(in.t), naming.SystemNamespace, naming.HubServiceAccount)),
		"--namespace", naming.SystemNamespace, "--leader-elect=false", "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
}

// endHub kills the hub of the spare.
func (in *run) endHub() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, p := range in.programs[restored] {
		p.ending = true
		p.Kill()
	}
}

// emptySpare deletes all that a run has left on the spare, and gives the hub its own identity
// again.
func (in *run) emptySpare(s *spare) {
	in.t.Helper()
	ctx, on := context.Background(), s.Client(in.t)
	in.endHub()
	made := slices.DeleteFunc(list(in, on, kinds(in, s.Cluster)), func(o unstructured.Unstructured) bool {
		return s.installed[o.GetUID()] || o.GetAPIVersion() == "" // a share of a binding
	})
	var bindings rbacv1.ClusterRoleBindingList
	in.check(on.List(ctx, &bindings))
	for _, b := range bindings.Items {
		if strings.HasPrefix(b.Name, agentroles.ContentRole+"-") {
			in.check(on.Delete(ctx, &b))
		}
	}
	unguarded := []byte(`{"metadata":{"finalizers":null,"annotations":{"` + fleet.AnnotationDeleteWithMembers + `":"true"}}}`)
	for _, o := range made {
		if len(o.GetFinalizers()) > 0 || o.GetKind() == "Namespace" {
			in.check(client.IgnoreNotFound(on.Patch(ctx, &o, client.RawPatch(types.MergePatchType, unguarded))))
		}
		in.check(client.IgnoreNotFound(on.Delete(ctx, &o)))
	}
	identity := &corev1.Secret{}
	in.check(on.Get(ctx, client.ObjectKeyFromObject(s.identity), identity))
	identity.Data, identity.Annotations = s.identity.Data, s.identity.Annotations
	in.check(on.Update(ctx, identity))
	in.eventually("the namespaces of the run are gone", func() error {
		var left corev1.NamespaceList
		if err := on.List(ctx, &left); err != nil {
			return err
		}
		for _, n := range left.Items {
			if !s.installed[n.UID] {
				return fmt.Errorf("%s is there", n.Name)
			}
		}
		return nil
	})
}

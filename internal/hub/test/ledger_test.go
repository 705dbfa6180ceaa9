package hub_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/hack/ledger"
	"github.com/muster-fleet/muster/internal/naming"
)

var update = flag.Bool("update", false, "write smaller numbers into the tables of hack/ledger")

const (
	// ledgerJoins is the number of joins of each way into the fleet. The first is not measured,
	// because it also creates what the members of a workspace share.
	ledgerJoins = 4
	// calm is the time without a request of a member, after which its join is over.
	calm = 2 * time.Second
)

// joinOnLedger is one join: the names that only its requests have, the namespace of the member, and
// the account in the kubeconfig of an imported cluster. The importer looks for the silent agents of
// earlier joins with that account, also while clusters join in another way.
type joinOnLedger struct {
	names           []string
	memberNamespace string
	importer        string
}

// TestTheRequestsOfAJoinOnlyBecomeFewer joins members in all four ways, one after another, and
// compares the requests in the audit log with the tables of hack/ledger. With -update it writes
// smaller numbers there.
//
// It takes longer than a minute: sixteen joins, each with some seconds without requests after it.
func TestTheRequestsOfAJoinOnlyBecomeFewer(t *testing.T) {
	f := newUndefining(t)
	var earlier []string
	for _, way := range []struct {
		name string
		join func(f fixture, values map[string]string, id string) joinOnLedger
	}{
		{"native", fixture.joinNative}, {"legacy", fixture.joinLegacy}, {"import", fixture.joinByKubeconfig},
		{"membercluster", fixture.joinMemberCluster},
	} {
		t.Run(way.name, func(t *testing.T) {
			f := f
			f.t = t
			f = f.neighbour()
			_, values := f.token("new-token", "")
			var joins []map[ledger.Line]int
			for i := range ledgerJoins {
				mark, err := rig.MarkAudit(f.cluster.Dir)
				f.check(err)
				join := way.join(f, values, fmt.Sprintf("%s-%d", way.name, i))
				if counted := f.untilCalm(mark, join, earlier); i > 0 {
					joins = append(joins, counted)
				}
				earlier = append(earlier, join.names...)
			}
			f.checkLedger(way.name, ledger.Fewest(joins...))
		})
	}
}

// checkLedger compares the requests of a join with the table of a file.
func (f fixture) checkLedger(name string, measured map[ledger.Line]int) {
	f.t.Helper()
	path := filepath.Join("..", "..", "..", "hack", "ledger", name+".txt")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && *update {
		f.check(os.WriteFile(path, []byte(ledger.Of(measured).Text()), 0o644))
		return
	}
	f.check(err)
	table, err := ledger.Parse(string(text))
	f.check(err)
	grown, shrunk := table.Compare(measured)
	if len(grown) > 0 {
		f.t.Errorf("a join costs more requests than hack/ledger/%s.txt allows: %s", name, strings.Join(grown, "; "))
	}
	if len(shrunk) > 0 {
		f.t.Logf("a join costs fewer requests than in hack/ledger/%s.txt; run this test with -update: %s", name, strings.Join(shrunk, "; "))
	}
	if *update {
		f.check(os.WriteFile(path, []byte(table.Shrink(measured).Text()), 0o644))
	}
}

// untilCalm waits until a join causes no more requests, and returns their numbers.
func (f fixture) untilCalm(mark rig.Audit, join joinOnLedger, earlier []string) map[ledger.Line]int {
	f.t.Helper()
	counted, since := f.count(mark, join, earlier), time.Now()
	for deadline := since.Add(time.Minute); time.Since(since) < calm; time.Sleep(calm / 6) {
		now := f.count(mark, join, earlier)
		if fmt.Sprint(now) != fmt.Sprint(counted) {
			counted, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the join does not end: %v", counted)
		}
	}
	return counted
}

// count counts the requests of a join. The requests of other members have their names in the path.
func (f fixture) count(mark rig.Audit, join joinOnLedger, earlier []string) map[ledger.Line]int {
	f.t.Helper()
	counted := map[ledger.Line]int{}
	f.check(mark.Each(func(e rig.Event) {
		who := f.payer(e, join)
		code := e.ResponseStatus.Code
		if code < 400 {
			code = 0
		}
		started := e.Verb == "watch" && code == 0
		if who == "" || started != (e.Stage == "ResponseStarted") || !f.concerns(e, join, earlier) {
			return
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		if e.Verb == "patch" && code == http.StatusConflict { // which object it meets depends on time
			resource = "any"
		}
		counted[ledger.Line{Who: who, Verb: e.Verb, Resource: resource, Code: code}]++
	}))
	return counted
}

// payer returns the user in the ledger; empty for the test itself and the control plane.
func (f fixture) payer(e rig.Event, join joinOnLedger) string {
	account, is := strings.CutPrefix(e.Actor(), "system:serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	switch {
	case !is:
		return ""
	case namespace == naming.SystemNamespace && name == "fleet-controller":
		return "hub"
	case namespace == join.memberNamespace:
		return "agent"
	case namespace == f.workspace:
		return "token"
	case namespace == naming.MemberSystemNamespace && name == join.names[0]:
		return "identity"
	case namespace == metav1.NamespaceDefault && name == join.importer:
		return "importer"
	}
	return ""
}

// concerns reports whether a request belongs to a join. The Lease of a running agent and the uses
// of a token are written by time, and not once for each join. The test polls for the Secret of an
// agent of Rancher Fleet.
func (f fixture) concerns(e rig.Event, join joinOnLedger, earlier []string) bool {
	of := e.ObjectRef
	contains := func(names []string) bool {
		for _, name := range names {
			if strings.Contains(e.RequestURI, name) || strings.Contains(of.Name, name) {
				return true
			}
		}
		return false
	}
	switch {
	case contains(earlier), of.Resource == "leases" && e.Verb == "patch", of.Resource == "clusterregistrationtokens",
		of.Resource == "secrets" && e.ResponseStatus.Code == http.StatusForbidden:
		return false
	case contains(join.names), of.Namespace == join.memberNamespace, of.Namespace == f.workspace,
		of.Namespace == naming.RegistrationNamespace(naming.SystemNamespace), of.Resource == "auditentries":
		return true
	}
	return of.Namespace == "" && of.Resource == "clusterrolebindings" || of.Name == "" && e.Verb == "create" && of.Resource != "events"
}

// onLedger names a Cluster.
func (f fixture) onLedger(name, id string) joinOnLedger {
	namespace := naming.MemberNamespace(f.workspace, name)
	return joinOnLedger{names: []string{name, namespace, id}, memberNamespace: namespace}
}

// joinNative joins by a token. The agent runs, and the test reports for the deployer.
func (f fixture) joinNative(values map[string]string, id string) joinOnLedger {
	f.t.Helper()
	m := managed{f.join(values, map[string]any{"clientID": id}, canReplaceItself), naming.Cluster(id)}
	f.untilReady(m.name, "Ready")
	reportDeployment(f.t, f.Client, m.sent(""), func(status map[string]any) {
		status["display"] = fleet.BundleDeploymentDisplay{Deployed: "True", State: "Ready"} // as muster-deployer
	})
	m.says(m.name, "UpToDate")
	return f.onLedger(m.name, id)
}

// joinLegacy joins as an agent of Rancher Fleet.
func (f fixture) joinLegacy(values map[string]string, id string) joinOnLedger {
	f.t.Helper()
	a := f.legacyJoin(values, id)
	f.eventually("the agent beats", func() error { return a.beat(time.Now()) })
	f.untilReady(naming.Cluster(id), "Ready")
	return f.onLedger(naming.Cluster(id), id)
}

// importerAccount is the account in the kubeconfig of an imported cluster.
const importerAccount = "ledger-importer"

// joinByKubeconfig joins as an imported cluster. The control plane of the hub plays it, with
// another UID.
func (f fixture) joinByKubeconfig(_ map[string]string, id string) joinOnLedger {
	f.t.Helper()
	namespace := f.namespace("agent-")
	down := f.cluster.Disguise(f.t, string(uuid.NewUUID()), nil)
	token := f.cluster.Account(f.t, importerAccount, "cluster-admin")
	i := importing{fixture: f, down: down, remote: f.Client, token: token, agentNamespace: namespace}
	f.check(f.Create(context.Background(), i.secret("kubeconfig-"+id, down.Kubeconfig(f.t, i.token))))
	i.record(id, "kubeconfig-"+id)
	f.eventually("the agent is installed", func() error {
		return f.Get(context.Background(), types.NamespacedName{Namespace: namespace, Name: naming.AgentBootstrapSecret}, &corev1.Secret{})
	})
	(&member{fixture: f, agentNamespace: namespace}).start()
	f.untilReady(id, "Ready")
	i.imported(id, "Imported")
	join := f.onLedger(id, namespace)
	join.importer = importerAccount
	return join
}

// joinMemberCluster joins as a MemberCluster with an agent of Muster.
func (f fixture) joinMemberCluster(_ map[string]string, id string) joinOnLedger {
	f.t.Helper()
	r := f.register(id)
	r.serve(f)
	r.until(clusterv1beta1.ConditionHealthy, metav1.ConditionTrue, "MemberClusterHealthy")
	r.until(clusterv1beta1.ConditionCredentialExchanged, metav1.ConditionTrue, "Exchanged")
	namespace := r.namespaceName()
	return joinOnLedger{names: []string{r.name, namespace}, memberNamespace: namespace}
}

package bundle

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/agent/supervise"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/testkube"
)

// supervise runs the program as the agent does, and returns what was reported to all deployments.
func (r *rig) supervise(arguments ...string) (reported func() []string) {
	r.t.Helper()
	order := r.order(r.server)
	placed := supervise.NewPlaced(protocol.Bundles, make(chan struct{}, 1))
	var mu sync.Mutex
	var all []string
	placed.Report = func(_ context.Context, _ map[string]int64, sentence string) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, sentence)
		return nil
	}
	r.check(placed.Replace([]any{&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "some"}}}, ""))
	supervisor := &supervise.Supervisor{
		Path: testkube.Build(r.t, protocol.Program), Placed: []*supervise.Placed{placed}, Changed: placed.Changed, Renewed: make(chan struct{}),
		Arguments: append([]string{"--kubeconfig", filepath.Join(r.cluster.Dir, "kubeconfig"), "--namespace", r.agent, "--holder", r.agent},
			arguments...),
		Order:  func() protocol.Order { return order },
		Left:   func(context.Context) (bool, error) { return true, nil },
		Leaves: func() clusterv1beta1.LeavePolicy { return "" },
		Log:    testr.New(r.t), Clock: clock.RealClock{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		supervisor.Run(ctx)
	}()
	r.t.Cleanup(func() { cancel(); <-ended })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestOneBadChartIsOneBadBundle(t *testing.T) {
	for name, row := range map[string]struct {
		template, says string
		arguments      []string
	}{
		"a chart that eats memory": {`key: {{ repeat 600000000 "x" }}`, "it ran out of memory", nil},
		"a chart that never ends": {
			`{{ range until 30000 }}{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}{{ end }}`,
			"it did not finish within 5s", []string{"--render-timeout=5s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// The bound of the program is 160 MiB then.
			t.Setenv("MEMORY_LIMIT", fmt.Sprint(256<<20))
			r := newRigAlone(t)
			chart := file("Chart.yaml", "apiVersion: v2\nname: bad\nversion: 1.0.0\n")
			r.place("good", fleet.BundleDeploymentOptions{}, configMap("good", "one"))
			r.place("bad", fleet.BundleDeploymentOptions{}, chart,
				file("templates/bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata:\n  "+row.template+"\n"))
			reported := r.supervise(row.arguments...)
			r.until("bad", fleet.StateErrApplied, "muster-deployer", row.says)
			if deployed := kube.FindCondition(r.get("bad").Status.Conditions, fleet.ConditionDeployed); deployed.Reason != "DeployerCrashed" {
				t.Errorf("the condition is %+v", deployed)
			}
			r.until("good", fleet.StateReady)
			r.deploy("later", fleet.BundleDeploymentOptions{}, configMap("later", "one"))
			r.deploy("bad", fleet.BundleDeploymentOptions{}, configMap("bad", "mended"))
			if said := reported(); len(said) > 0 {
				t.Errorf("all statuses were changed: %s", said)
			}
		})
	}
}

func TestSlowDefinitionsAreNotTakenForAChartThatNeverEnds(t *testing.T) {
	r := newRig(t)
	names := []string{"firsts", "seconds", "thirds"}
	blocker := func(name string) *unstructured.Unstructured {
		blocks := &unstructured.Unstructured{}
		r.check(yaml.Unmarshal([]byte(r.definitionOf("other"+name, "Kind"+name).Content), &blocks.Object))
		return blocks
	}
	for _, name := range names { // a kind of the same name keeps the definition from being served
		r.create(blocker(name))
		r.t.Cleanup(func() { _ = r.kube.Delete(context.Background(), blocker(name)) }) // it may be gone already
	}
	resources := []fleet.BundleResource{file("first.yaml",
		fmt.Sprintf("apiVersion: %s/v1\nkind: Kindfirsts\nmetadata: {name: first}\n", r.group()))}
	for _, name := range names {
		resources = append(resources, file(name+".yaml", r.definitionOf(name, "Kind"+name).Content))
	}
	// Another version is not served before its definition is.
	resources[0].Content = strings.Replace(resources[0].Content, "/v1", "/v2", 1)
	for i := range resources[1:] {
		resources[i+1].Content = strings.Replace(resources[i+1].Content, "name: v1,", "name: v2,", 1)
	}
	r.place("slow", fleet.BundleDeploymentOptions{DeleteCRDResources: true}, resources...)
	r.supervise("--render-timeout=4s")
	r.eventually("all definitions are waited for at once", func() error {
		for _, name := range names {
			if err := r.kube.Get(t.Context(), client.ObjectKey{Name: name + "." + r.group()}, r.object(definitions, "", "")); err != nil {
				return err
			}
		}
		return nil
	})
	time.Sleep(8 * time.Second) // twice as long as a chart may take: that nothing is killed has no event
	for _, name := range names {
		r.check(r.kube.Delete(t.Context(), blocker(name)))
	}
	r.eventually("the Bundle is deployed", func() error {
		found := r.get("slow")
		if deployed := kube.FindCondition(found.Status.Conditions, fleet.ConditionDeployed); deployed != nil &&
			deployed.Reason == reasons.DeployerCrashed {
			t.Fatalf("the deployer was killed: %s", deployed.Message)
		}
		if state := contents.StateOf(found); state != fleet.StateReady {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
}

func TestASuspectThatIsRemovedHoldsNoOtherUp(t *testing.T) {
	r := newRig(t)
	first := r.start()
	r.deploy("suspect", fleet.BundleDeploymentOptions{},
		file("hook.yaml", strings.Replace(hook.Content, "pre-install,pre-upgrade", "pre-delete", 1)), configMap("suspect", "one"))
	first.stop()
	r.suspects = []protocol.Suspect{{Name: "suspect"}}
	r.start()
	r.check(r.kube.Delete(t.Context(), r.get("suspect")))
	r.underWay()
	begun := time.Now()
	r.deploy("other", fleet.BundleDeploymentOptions{}, configMap("other", "one"))
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("the other one took %s: as long as the removal of the suspect", took)
	}
	r.complete()
}

func TestTheEndOfARenderingEndsNothingElse(t *testing.T) {
	t.Setenv("MEMORY_LIMIT", fmt.Sprint(256<<20))
	r := newRigAlone(t)
	r.place("web", fleet.BundleDeploymentOptions{}, hook, configMap("web", "one"))
	p := r.program(testkube.Build(t, protocol.Program), r.cluster.Config.Host, "--render-timeout=5s")
	uid := r.underWay()
	for name, template := range map[string]string{
		"much":    `{{ repeat 600000000 "x" }}`,
		"endless": `{{ range until 30000 }}{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}{{ end }}`,
	} {
		r.place(name, fleet.BundleDeploymentOptions{}, file("Chart.yaml", "apiVersion: v2\nname: bad\nversion: 1.0.0\n"),
			file("templates/bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata:\n  key: "+template+"\n"))
	}
	r.until("much", fleet.StateErrApplied, "it ran out of memory, with a limit of 128 MiB", "give the agent more memory")
	r.until("endless", fleet.StateErrApplied, "it did not finish within 5s")
	r.deploy("other", fleet.BundleDeploymentOptions{}, configMap("other", "one"))
	if again := r.underWay(); again != uid {
		t.Error("the hook of another Bundle was started again")
	}
	r.complete()
	r.until("web", fleet.StateReady)
	select {
	case err := <-p.exited:
		t.Errorf("the deployer ended: %v", err)
	default:
	}
}

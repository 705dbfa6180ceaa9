package charts_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	muster "github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/placement"
	"github.com/muster-fleet/muster/internal/hub/runtime/identity"
	hubmetrics "github.com/muster-fleet/muster/internal/hub/runtime/metrics"
	"github.com/muster-fleet/muster/internal/hub/runtime/notify"
	"github.com/muster-fleet/muster/internal/hub/runtime/pacing"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

func TestMonitoringIsThereIfAskedFor(t *testing.T) {
	for _, object := range hub("").mustRender(t).objects {
		if strings.HasPrefix(object.GetAPIVersion(), "monitoring.coreos.com/") || object.GetName() == "fleet-controller-board" {
			t.Errorf("%s %s is there, and nobody asked for it", object.GetKind(), object.GetName())
		}
	}
	out := hub("", "monitoring.podMonitor.enabled=true", "monitoring.podMonitor.labels.release=prometheus",
		"monitoring.rules.enabled=true").mustRender(t)
	monitor := out.object(t, "PodMonitor", "fleet-controller")
	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	labels, _, _ := out.podOf(t, "fleet-controller")
	if monitor.GetLabels()["release"] != "prometheus" || len(selector) == 0 || labels["app"] != selector["app"] {
		t.Errorf("the PodMonitor has the labels %v and selects %v", monitor.GetLabels(), selector)
	}
	for _, rule := range alerts(t, out) {
		summary := rule["annotations"].(map[string]any)["summary"].(string)
		if rule["expr"] == "" || summary == "" || strings.Contains(summary, `"{{`) {
			t.Errorf("alert %v: %v", rule["alert"], rule)
		}
	}
	board := hub("", "monitoring.board.enabled=true", "monitoring.board.labels.team=a",
		"monitoring.board.annotations.grafana_folder=Fleet").mustRender(t).object(t, "ConfigMap", "fleet-controller-board")
	if board.GetLabels()["grafana_dashboard"] != "1" || board.GetLabels()["team"] != "a" ||
		board.GetAnnotations()["grafana_folder"] != "Fleet" {
		t.Errorf("the board has the labels %v and the annotations %v", board.GetLabels(), board.GetAnnotations())
	}
}

// alerts are the rules of the chart's one group.
func alerts(t *testing.T, out release) (rules []map[string]any) {
	t.Helper()
	groups, _, _ := unstructured.NestedSlice(out.object(t, "PrometheusRule", "fleet-controller").Object, "spec", "groups")
	for _, rule := range groups[0].(map[string]any)["rules"].([]any) {
		rules = append(rules, rule.(map[string]any))
	}
	return rules
}

// board is what the test reads of a dashboard of Grafana.
type board struct {
	Title      string
	Panels     []panel
	Templating struct {
		List []struct{ Type, Query string }
	}
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ Expr string }
}

func rendered(t *testing.T) (board, release) {
	t.Helper()
	out := hub("", "monitoring.board.enabled=true", "monitoring.rules.enabled=true").mustRender(t)
	text, _, _ := unstructured.NestedString(out.object(t, "ConfigMap", "fleet-controller-board").Object, "data", "muster-hub.json")
	var b board
	if err := json.Unmarshal([]byte(text), &b); err != nil || b.Title == "" {
		t.Fatalf("the board is no JSON of one: %v", err)
	}
	return b, out
}

func TestEachPanelHasARoomOfItsOwnAndSomethingToShow(t *testing.T) {
	b, _ := rendered(t)
	room := map[[2]int]string{}
	ids := map[int]bool{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.Title == "" || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d, %q: the ID is another's, or it has no title, or %d expressions", p.ID, p.Title, len(p.Targets))
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if room[at] != "" || at[0] >= 24 {
					t.Fatalf("%q is where %q is, or beyond the edge", p.Title, room[at])
				}
				room[at] = p.Title
			}
		}
	}
}

var (
	describes  = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	selectors  = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*\{([^}]*)\}`)
	matchers   = regexp.MustCompile(`([a-zA-Z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	groupings  = regexp.MustCompile(`\b(by|without)\s*\(([^)]*)\)`)
	names      = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	ranges     = regexp.MustCompile(`\[[^]]*\]`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	calls      = regexp.MustCompile(`[a-z_0-9]+\s*\(`)
	variables  = regexp.MustCompile(`^label_values\((.*), ([a-z]+)\)$`)
	controller = regexp.MustCompile(`Named\("([a-z-]+)"\)`)
)

// targetLabels are those that Prometheus gives to all that it scrapes, and the bound of a
// histogram's bucket.
var targetLabels = []string{"job", "instance", "namespace", "pod", "le"}

// served are the labels of the metrics that hub and agent register, by the names under
// which they are scraped.
func served() map[string][]string {
	described := make(chan *prometheus.Desc, 4096)
	for _, collector := range []prometheus.Collector{
		metrics.Registry.(*prometheus.Registry), liveness.New(nil, nil, logr.Discard()), placement.New(placement.Deps{}),
		hubmetrics.Census{}, identity.Metrics{}, settings.Metrics{}, pacing.New(logr.Discard()),
		muster.Metrics(), notify.New(notify.Deps{Config: settings.New(nil, nil, "")}),
	} {
		collector.Describe(described)
	}
	close(described)
	all := map[string][]string{}
	for description := range described {
		if found := describes.FindStringSubmatch(description.String()); found != nil {
			for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
				all[found[1]+suffix] = names.FindAllString(found[2], -1)
			}
		}
	}
	return all
}

func TestEveryMetricOfTheBoardAndOfTheAlertsIsOneThatHubOrAgentServe(t *testing.T) {
	b, out := rendered(t)
	expressions := map[string]string{}
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			expressions[p.Title+": "+target.Expr] = target.Expr
		}
	}
	for _, variable := range b.Templating.List {
		if found := variables.FindStringSubmatch(variable.Query); found != nil {
			expressions[variable.Query] = "sum by (" + found[2] + ") (" + found[1] + ")"
		} else if variable.Type == "query" {
			t.Errorf("the variable %q is not understood", variable.Query)
		}
	}
	for _, rule := range alerts(t, out) {
		expressions["alert "+rule["alert"].(string)] = rule["expr"].(string)
	}
	if len(expressions) < 25 {
		t.Errorf("there are %d expressions only", len(expressions))
	}
	known, controllers := served(), controllers(t)
	for where, expression := range expressions {
		check(t, where, expression, known)
		for _, matcher := range matchers.FindAllStringSubmatch(expression, -1) {
			for name := range strings.SplitSeq(matcher[2], "|") {
				if matcher[1] == "controller" && name != "$controller" && !slices.Contains(controllers, name) {
					t.Errorf("%s: the hub has no controller %s", where, name)
				}
			}
		}
	}
}

// check holds an expression to the metrics and the labels that there are.
func check(t *testing.T, where, expression string, known map[string][]string) {
	t.Helper()
	allowed := slices.Clone(targetLabels)
	for _, selector := range selectors.FindAllStringSubmatch(expression, -1) {
		for _, matcher := range matchers.FindAllStringSubmatch(selector[2], -1) {
			if !slices.Contains(append(slices.Clone(targetLabels), known[selector[1]]...), matcher[1]) {
				t.Errorf("%s: %s has no label %s", where, selector[1], matcher[1])
			}
		}
	}
	bare := selectors.ReplaceAllString(ranges.ReplaceAllString(quoted.ReplaceAllString(expression, ""), ""), "$1")
	used := 0
	for _, name := range names.FindAllString(calls.ReplaceAllString(groupings.ReplaceAllString(bare, ""), "("), -1) {
		labels, found := known[name]
		if name == "or" || name == "and" || name == "unless" {
			continue
		}
		if !found {
			t.Errorf("%s: neither hub nor agent serves %s", where, name)
		}
		used++
		allowed = append(allowed, labels...)
	}
	if used == 0 {
		t.Errorf("%s: no metric was found in it", where)
	}
	for _, grouping := range groupings.FindAllStringSubmatch(bare, -1) {
		for _, label := range names.FindAllString(grouping[2], -1) {
			if !slices.Contains(allowed, label) {
				t.Errorf("%s: no metric in it has a label %s", where, label)
			}
		}
	}
}

// controllers are the names that the source of the hub gives to its controllers.
func controllers(t *testing.T) (found []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", "internal", "hub"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range controller.FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The test above is worth something only if it refuses what is wrong.
func TestAnExpressionOfWhatIsNotServedIsFound(t *testing.T) {
	known := served()
	for expression, right := range map[string]bool{
		`sum by (state) (muster_hub_members{state="Lost"})`:           true,
		`rate(rest_client_requests_total[5m]) > 0.5`:                  true,
		`absent(leader_election_master_status{name="muster-hub"})`:    true,
		`sum(muster_hub_member_count)`:                                false,
		`sum(muster_hub_members{stat="Lost"})`:                        false,
		`sum by (cluster) (muster_hub_members)`:                       false,
		`histogram_quantile(0.9, rest_client_request_latency_bucket)`: false,
	} {
		probe := &testing.T{}
		check(probe, "", expression, known)
		if probe.Failed() == right {
			t.Errorf("%s: taken for wrong: %t", expression, probe.Failed())
		}
	}
}

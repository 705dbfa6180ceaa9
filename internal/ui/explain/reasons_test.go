package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// well are reasons of what is as it should be, and of what is not among the objects that are explained: evictions, the stages
// of staged update runs and what they approve, and the agents in reports.
var well = strings.Fields(`
	AllManifestsApplied AllManifestsAvailable AllManifestsDiffReported AllWorkAreAvailable AllWorkHaveBeenApplied AllWorkHaveDiffReported AllWorkSynced
	ApplySucceeded DiffReportingCompleted ResourceAvailable
	ClusterResourcePlacementEvictionExecuted ClusterResourcePlacementEvictionInvalid ClusterResourcePlacementEvictionNotExecuted ClusterResourcePlacementEvictionValid
	UpdateRunInitializedSuccessfully UpdateRunProgressing UpdateRunSucceeded StageUpdatingStarted StageUpdatingWaiting StageUpdatingStopping StageUpdatingStopped StageUpdatingFailed
	StageUpdatingSucceeded StageUpdatingSkippedNoClusters ClusterUpdatingStarted ClusterUpdatingFailed ClusterUpdatingSucceeded
	StageTaskApprovalRequestCreated StageTaskApprovalRequestApproved AfterStageTaskWaitTimeElapsed ApprovalRequestApprovalAccepted
	InternalMemberClusterHealthy InternalMemberClusterJoined InternalMemberClusterLeft Joined Registering Succeeded
	AgentHealthy ClusterJoined Deployed Exchanged Granted Imported InUse Installed LabelsStamped ManifestApplied
	ManifestAvailable MemberClusterHealthy MemberClusterJoined MemberClusterReadyToJoin NamespaceReady NoDifference NoOverrideSpecified Open OverriddenSucceeded
	Processed Ready RolloutStarted Scheduled SchedulingPolicyFulfilled StatusSyncSucceeded Supported UpToDate Watched WorkSynchronized`)

// ofKubeFleet are reasons that agents of KubeFleet write, and the hub shows as they are.
var ofKubeFleet = []string{"ManifestApplyFailed", "FoundDrifts"}

var isReason = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// TestEveryReasonOfTheHubIsExplained reads the reasons out of the source of whatever writes them.
func TestEveryReasonOfTheHubIsExplained(t *testing.T) {
	known := slices.Clone(well)
	for _, c := range causes {
		known = append(known, c.reasons...)
	}
	said := map[string]string{}
	for _, dir := range strings.Fields(`
		joining/admission joining/importer joining/registration joining/token credentials/renewal members/cluster members/inventory
		members/lifecycle members/membercluster members/membernamespace bundles/agentbundle bundles/bundle placement
		runtime/removal runtime/servedkinds ../delivery/protocol ../agent/supervise ../fleet/membership ../agent/report ../agent/not_running.go ../agent/decide.go
		../deploy/bundle ../deploy/work ../../api`) {
		reasonsIn(t, filepath.Join("..", "..", "hub", dir), said)
	}
	if len(said) < 100 {
		t.Errorf("only %d reasons were found", len(said))
	}
	for reason, where := range said {
		if !slices.Contains(known, reason) {
			t.Errorf("%s: nobody explains %s", where, reason)
		}
	}
	for _, reason := range well {
		if _, written := said[reason]; !written {
			t.Errorf("nobody writes %s", reason)
		}
	}
	for _, c := range causes {
		for _, reason := range c.reasons {
			if _, written := said[reason]; !written && reason != reasonNew && !slices.Contains(ofKubeFleet, reason) {
				t.Errorf("nobody writes %s, which is explained", reason)
			}
		}
	}
}

// reasonsIn notes the reasons that the files of a directory write, and where.
func reasonsIn(t *testing.T, dir string, said map[string]string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			return err
		}
		note := func(e ast.Expr) {
			if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if reason, err := strconv.Unquote(literal.Value); err == nil && isReason.MatchString(reason) {
					said[reason] = files.Position(e.Pos()).String()
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			reasonsOf(n, file.Name.Name, note)
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// reasonsOf notes the reasons that a piece of source writes: constants that are named so, fields, and first arguments of functions that make a decision.
func reasonsOf(n ast.Node, pkg string, note func(ast.Expr)) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		of, _ := n.Type.(*ast.Ident)
		for i, name := range n.Names {
			isState := of != nil && (of.Name == "State" && (pkg == "agentbundle" && name.Name != "send" || pkg == "agent") || of.Name == "BundleState")
			if i < len(n.Values) && (isState || strings.HasPrefix(strings.ToLower(name.Name), "reason")) {
				note(n.Values[i])
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "reason") {
			note(n.Value)
		}
	case *ast.CallExpr:
		function, ok := n.Fun.(*ast.Ident)
		if ok && slices.Contains([]string{"denied", "waiting", "withReason"}, function.Name) && len(n.Args) > 0 {
			note(n.Args[0])
		}
		if selected, ok := n.Fun.(*ast.SelectorExpr); ok && selected.Sel.Name == "Condition" && len(n.Args) > 2 { // kube.Condition(type, status, reason, …)
			note(n.Args[2])
		}
	}
}

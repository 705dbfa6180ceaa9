package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	internalDir = "../.."
	reasonsDir  = internalDir + "/fleet/reasons"
)

// well are reasons of what is as it should be, and of what is not among the objects that are
// explained: evictions, staged update runs and what they approve, ClusterGroups, kinds that the hub
// does not implement, and the agents in reports.
var well = strings.Fields(`
	AllManifestsApplied AllManifestsAvailable AllManifestsDiffReported AllWorkAreAvailable AllWorkHaveBeenApplied AllWorkHaveDiffReported
		AllWorkSynced
	ApplySucceeded DiffReportingCompleted ResourceAvailable
	ClusterResourcePlacementEvictionExecuted ClusterResourcePlacementEvictionInvalid ClusterResourcePlacementEvictionNotExecuted
		ClusterResourcePlacementEvictionValid
	UpdateRunInitializedSuccessfully UpdateRunInitializedFailed UpdateRunProgressing UpdateRunWaiting UpdateRunStuck UpdateRunStopping
		UpdateRunStopped
	UpdateRunFailed UpdateRunSucceeded StageUpdatingStarted StageUpdatingWaiting StageUpdatingStopping StageUpdatingStopped StageUpdatingFailed
	StageUpdatingSucceeded StageUpdatingSkippedNoClusters ClusterUpdatingStarted ClusterUpdatingFailed ClusterUpdatingSucceeded
	StageTaskApprovalRequestCreated StageTaskApprovalRequestApproved AfterStageTaskWaitTimeElapsed ApprovalRequestApprovalAccepted
	InternalMemberClusterHealthy InternalMemberClusterJoined InternalMemberClusterLeft Joined Registering Succeeded
	AgentHealthy ClusterJoined DeletionValid Deployed Exchanged Granted Imported InUse Initialized Installed LabelsStamped ManifestApplied
	ManifestAvailable MemberClusterHealthy MemberClusterJoined MemberClusterReadyToJoin NamespaceReady NoDifference NoOverrideSpecified Open
		OverriddenSucceeded
	RotationDone ClustersNotReady Counted InvalidSelector Accepted Polled PollingDisabled
	Processed Ready RolloutStarted Scheduled SchedulingPolicyFulfilled StatusSyncSucceeded Supported UpToDate Watched WorkSynchronized`)

// ofEvents are reasons that only Events have; explain reads no Events.
var ofEvents = strings.Fields(`
	AccountMissing AgentOnline AgentStays AgentVersionChanged ClusterSetMissing
	ConfigInvalid ConfigMissing ForcedLeave GotNewCommit GotNewVersion WebhookCommitNotVisible
	KubernetesVersionChanged LostKept LostRemoved LostTaintRemoved LostTainted MachinesGo NeverJoined NotFromClusterAPI
	NotificationsFail NotificationsSent PlacementDecisionTaken PlacementNotFound QuarantineEnded StatusNotWritten TaintRemoved`)

// ofKubeFleet are reasons that agents of KubeFleet write, and the hub shows as they are.
var ofKubeFleet = []string{"ManifestApplyFailed", "FoundDrifts"}

// namesakes are constants without a type that have the value of a reason and are something else.
var namesakes = map[string]string{
	"JobFailed":          "a condition of a Job",
	"ConditionAccepted":  "the type of a condition",
	"conditionPolled":    "the type of a condition",
	"conditionProcessed": "the type of a condition",
	"metricRemoving":     "a label of a metric",
	"stateWaitCheckIn":   "status.display.state of a Cluster",
	"StateLeaving":       "a state in tables",
	"StateReady":         "a state in tables",
}

var isReason = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// TestEveryReasonIsExplained takes the reasons from package reasons, and those that package api and
// the state machines declare.
func TestEveryReasonIsExplained(t *testing.T) {
	known := slices.Concat(well, ofEvents)
	for _, c := range causes {
		known = append(known, c.reasons...)
	}
	said := declared(t)
	for _, dir := range strings.Fields("hub/bundles/agentbundle agent ../api") {
		for _, f := range parse(t, filepath.Join(internalDir, dir), false) {
			maps.Copy(said, f.states())
		}
	}
	if len(said) < 250 {
		t.Errorf("only %d reasons were found", len(said))
	}
	for reason, where := range said {
		if !slices.Contains(known, reason) {
			t.Errorf("%s: nobody explains %s", where, reason)
		}
	}
	for _, reason := range slices.Concat(well, ofEvents) {
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

// TestEveryReasonIsWritten looks for uses outside of what users see, which only reads reasons.
func TestEveryReasonIsWritten(t *testing.T) {
	used := map[string]bool{}
	for _, f := range parse(t, internalDir, false) {
		if strings.HasPrefix(f.path, internalDir+"/ui/") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := selector.X.(*ast.Ident); ok && of.Name == "reasons" {
					used[selector.Sel.Name] = true
				}
			}
			return true
		})
	}
	for reason, where := range declared(t) {
		if !used[reason] {
			t.Errorf("%s: nothing writes %s", where, reason)
		}
	}
}

// TestEveryReasonIsDeclaredOnce finds constants of reasons outside package reasons, and literals in
// the places that write a reason.
func TestEveryReasonIsDeclaredOnce(t *testing.T) {
	all := declared(t)
	for _, f := range parse(t, internalDir, false) {
		if strings.HasPrefix(f.path, reasonsDir+"/") {
			continue
		}
		for name, value := range f.constants() {
			_, taken := all[value]
			named := strings.HasPrefix(strings.ToLower(name), "reason") && isReason.MatchString(value) && name != "reasonNew"
			if (taken || named) && namesakes[name] == "" {
				t.Errorf("%s: constant %s has the value %s: use package reasons", f.path, name, value)
			}
		}
		for at, value := range f.literals() {
			t.Errorf("%s: the reason %q is a literal: use package reasons", at, value)
		}
	}
}

// source is one file.
type source struct {
	path   string
	syntax *ast.File
	files  *token.FileSet
}

// parse reads the Go files below a directory that are no tests; comments only if wanted.
func parse(t *testing.T, dir string, comments bool) (all []source) {
	t.Helper()
	mode := parser.SkipObjectResolution
	if comments {
		mode |= parser.ParseComments
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, path, nil, mode)
		all = append(all, source{filepath.ToSlash(path), syntax, files})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s source) at(n ast.Node) string { return s.files.Position(n.Pos()).String() }

// declared returns the constants of package reasons, and where they are. Each is named as its value
// and has a comment that begins with the name.
func declared(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range parse(t, reasonsDir, true) {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			name := spec.Names[0].Name
			if len(spec.Names) != 1 || len(spec.Values) != 1 || reasonOf(spec.Values[0]) != name {
				t.Errorf("%s: the constant %s is not named as its value", f.at(spec), name)
			}
			if !strings.HasPrefix(spec.Doc.Text(), name+": ") {
				t.Errorf("%s: no comment says what %s means", f.at(spec), name)
			}
			if before := all[name]; before != "" {
				t.Errorf("%s: %s is declared at %s, too", f.at(spec), name, before)
			}
			all[name] = f.at(spec)
			return false
		})
	}
	return all
}

// reasonOf returns the reason that an expression is: a literal, or a constant of package api, which
// is named Reason and the value; empty if it is none.
func reasonOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if value, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING && isReason.MatchString(value) {
			return value
		}
	case *ast.SelectorExpr:
		if name, ok := strings.CutPrefix(e.Sel.Name, "Reason"); ok {
			return name
		}
	}
	return ""
}

// states returns the reasons that are constants named so, and the typed states which are reasons.
func (s source) states() map[string]string {
	all := map[string]string{}
	pkg := s.syntax.Name.Name
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		of, _ := spec.Type.(*ast.Ident)
		for i, name := range spec.Names {
			isState := of != nil && (of.Name == "State" && (pkg == "agentbundle" && name.Name != "send" || pkg == "agent") ||
				of.Name == "BundleState")
			if i < len(spec.Values) && (isState || strings.HasPrefix(strings.ToLower(name.Name), "reason")) {
				if reason := reasonOf(spec.Values[i]); reason != "" {
					all[reason] = s.at(spec)
				}
			}
		}
		return true
	})
	return all
}

// constants returns the texts that have no type of their own, by name.
func (s source) constants() map[string]string {
	all := map[string]string{}
	for _, d := range s.syntax.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok && spec.Type == nil {
					all[spec.Names[i].Name] = reasonOf(literal)
				}
			}
		}
	}
	return all
}

// literals returns the literals where a reason is written or compared, by place: fields, variables
// and arguments. The reasons of Kubernetes are no reasons of ours.
func (s source) literals() map[string]string {
	all := map[string]string{}
	note := func(e ast.Expr) {
		if literal, ok := e.(*ast.BasicLit); ok && reasonOf(literal) != "" && reasonOf(literal) != "OOMKilled" {
			all[s.at(literal)] = literal.Value
		}
	}
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if isReasonName(n.Key) {
				note(n.Value)
			}
		case *ast.AssignStmt:
			for i := range n.Lhs {
				if len(n.Lhs) == len(n.Rhs) && isReasonName(n.Lhs[i]) {
					note(n.Rhs[i])
				}
			}
		case *ast.BinaryExpr:
			if isReasonName(n.X) {
				note(n.Y)
			}
		case *ast.CallExpr:
			if i := reasonArgument(n); i >= 0 && i < len(n.Args) {
				note(n.Args[i])
			}
		}
		return true
	})
	return all
}

// isReasonName reports whether an expression is a field or a variable with the name of a reason.
func isReasonName(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.EqualFold(e.Name, "reason")
	case *ast.SelectorExpr:
		return strings.EqualFold(e.Sel.Name, "reason")
	}
	return false
}

// reasonArgument returns which argument of a call is a reason; -1 if none is.
func reasonArgument(call *ast.CallExpr) int {
	switch function := call.Fun.(type) {
	case *ast.Ident:
		if slices.Contains([]string{"denied", "waiting", "withReason"}, function.Name) {
			return 0
		}
	case *ast.SelectorExpr:
		switch function.Sel.Name {
		case "Condition": // kube.Condition(type, status, reason, …)
			return 2
		case "Eventf": // recorder.Eventf(object, related, type, reason, …)
			return 3
		}
	}
	return -1
}

package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// logKeys are the keys of values in log messages. Queries and alerts of users depend on them, so a
// value of the same kind has the same key in all programs.
var logKeys = []string{
	"address", "agentKey", "agentTLSMode", "agentTokenLifetime", "apiServerURL", "atMostPerSecond", "blocked",
	"bundles", "cause", "cluster", "clusterRoleBinding", "commit", "condition", "conditions", "configMap", "created",
	"deployment", "dropped", "duration", "entry", "epoch", "expires", "failed", "forge", "from", "gates", "gitRepos",
	"granted", "holder", "hub", "identity", "kept", "kind", "label", "labels", "lease", "leavePolicy", "lifetime",
	"manager", "member", "memberNamespace", "members", "message", "missing", "name", "namespace", "object", "objects",
	"open", "opened", "page", "path", "pid", "placement", "policy", "reason", "release", "removed", "request",
	"resource", "resourceIndex", "resources", "retry", "retryAfter", "run", "scheduled", "secret", "sequence", "state",
	"status", "taints", "to", "token", "uid", "user", "version", "waiting", "work", "works", "workspace", "written",
}

// loggerFunctions are the functions and methods that return a logger.
var loggerFunctions = []string{"V", "WithValues", "WithName", "LoggerFrom", "FromContext", "FromContextOrDiscard"}

var logKey = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// logCall returns the message and the values of a call that writes a log message; nil for any other
// call.
func logCall(call *ast.CallExpr) (message ast.Expr, values []ast.Expr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !isLogger(method.X) {
		return nil, nil
	}
	before := map[string]int{"Info": 0, "Error": 1}
	first, ok := before[method.Sel.Name]
	if !ok || len(call.Args) <= first {
		return nil, nil
	}
	return call.Args[first], call.Args[first+1:]
}

// isLogger reports whether an expression is a logger, by its name or by the function that returns
// it.
func isLogger(expression ast.Expr) bool {
	switch e := expression.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"log", "logger"}, strings.ToLower(e.Name))
	case *ast.SelectorExpr:
		return isLogger(e.Sel)
	case *ast.CallExpr:
		function, ok := e.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains(loggerFunctions, function.Sel.Name)
	}
	return false
}

// logFaults lists the log messages of a file that break the convention: a constant text with a
// capital first letter and no final point, and values with listed keys.
func logFaults(f goFile) (faults []string) {
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		message, values := logCall(call)
		if message == nil {
			return true
		}
		report := func(format string, args ...any) {
			faults = append(faults, fmt.Sprintf("%s:%d: ", f.name, f.files.Position(call.Pos()).Line)+fmt.Sprintf(format, args...))
		}
		text, constant := constantText(message)
		switch {
		case !constant:
			report("a log message is a constant: put what changes into a value")
		case !regexp.MustCompile(`^[A-Z]`).MatchString(text), strings.ContainsAny(text[len(text)-1:], ".:!?"):
			report("%q: a log message begins with a capital letter, and ends without a point", text)
		}
		for i, value := range values {
			if i%2 != 0 || call.Ellipsis.IsValid() {
				continue
			}
			switch key, constant := constantText(value); {
			case !constant:
				report("a key of a log message is a constant")
			case !slices.Contains(logKeys, key):
				report("key %q is not among logKeys in internal/policy/logs_test.go: use a key that is there, or add one", key)
			}
		}
		return true
	})
	return faults
}

// constantText returns the text of a sum of string literals.
func constantText(expression ast.Expr) (string, bool) {
	if sum, ok := expression.(*ast.BinaryExpr); ok {
		left, isLeft := constantText(sum.X)
		right, isRight := constantText(sum.Y)
		return left + right, isLeft && isRight
	}
	if _, ok := expression.(*ast.BasicLit); !ok {
		return "", false
	}
	return literal(expression)
}

func TestLogMessagesFollowOneConvention(t *testing.T) {
	for _, key := range logKeys {
		if !logKey.MatchString(key) {
			t.Errorf("key %q: want camelCase with a small first letter", key)
		}
	}
	found := 0
	for _, f := range goFiles(t) {
		if !strings.HasPrefix(f.name, "internal/") && !strings.HasPrefix(f.name, "cmd/") || isGenerated(f.data) {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if message, _ := logCall(call); message != nil {
					found++
				}
			}
			return true
		})
		for _, fault := range logFaults(f) {
			t.Error(fault)
		}
	}
	if found < 100 {
		t.Errorf("only %d log messages were found: does isLogger still know the loggers?", found)
	}
}

func TestLogFaultsAreFound(t *testing.T) {
	for call, want := range map[string]string{
		`log.Info("agent started")`:                      "capital letter",
		`s.Log.Info("Agent started.")`:                   "without a point",
		`log.Info("Watching " + kind)`:                   "is a constant",
		`ctrl.LoggerFrom(ctx).Error(err, "cannot list")`: "capital letter",
		`log.V(1).Info("Agent started", "Reason", why)`:  `key "Reason"`,
		`log.Info("Agent started", key, why)`:            "a key of a log message is a constant",
		`log.Info("Agent started", "reason", why)`:       "",
		`log.Info("Agent started", more...)`:             "",
		`recorder.Info("agent started")`:                 "",
		`log.Error(nil, "Kubernetes " + "is too old")`:   "",
	} {
		files := token.NewFileSet()
		syntax, err := parser.ParseFile(files, "p.go", "package p\n\nfunc f() {\n\t"+call+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		faults := strings.Join(logFaults(goFile{name: "p.go", syntax: syntax, files: files}), "\n")
		if !strings.Contains(faults, want) || want == "" && faults != "" {
			t.Errorf("%s: %q, want %q", call, faults, want)
		}
	}
}

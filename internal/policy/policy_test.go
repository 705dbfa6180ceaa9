package policy

import (
	"bytes"
	"go/ast"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestProductHasNoReplace(t *testing.T) {
	if regexp.MustCompile(`(?m)^\s*replace\b`).Match(read(t, "go.mod")) {
		t.Error("go.mod has a replace directive, so `go install` of the programs would not work")
	}
}

// TestToolsHaveTheVersionsOfTheProduct: else packages that both use are compiled for each of them.
func TestToolsHaveTheVersionsOfTheProduct(t *testing.T) {
	requirement := regexp.MustCompile(`(?m)^\s+(\S+) (v\S+)`)
	product := map[string]string{}
	for _, found := range requirement.FindAllStringSubmatch(string(read(t, "go.mod")), -1) {
		product[found[1]] = found[2]
	}
	for _, found := range requirement.FindAllStringSubmatch(string(read(t, "go.tools.mod")), -1) {
		if version := product[found[1]]; version != "" && version != found[2] {
			t.Errorf("%s is %s in go.mod and %s in go.tools.mod: run go get, with and without -modfile=go.tools.mod, with the newer one",
				found[1], version, found[2])
		}
	}
}

// TestAgentDoesNotLinkHelm: what deploys is a program of its own, because Helm alone would double
// the agent's memory.
func TestAgentDoesNotLinkHelm(t *testing.T) {
	command := exec.Command("go", "list", "-deps", "./cmd/muster-agent")
	command.Dir = root
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("listing what the agent links: %v\n%s", err, out)
	}
	for path := range strings.Lines(string(out)) {
		if path = strings.TrimSpace(path); within(path, "helm.sh/helm/v4") || within(path, module+"/internal/deploy") {
			t.Errorf("the agent links %s; only cmd/muster-deployer may", path)
		}
	}
}

// within reports whether a package is dir or below it.
func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// deletions are the calls in a file that delete something through a client.
func deletions(f goFile) (all []*ast.CallExpr) {
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		call, isCall := node.(*ast.CallExpr)
		if !isCall || len(call.Args) < 2 {
			return true
		}
		selector, isMethod := call.Fun.(*ast.SelectorExpr)
		if isMethod && slices.Contains([]string{"Delete", "DeleteByUID", "DeleteWork", "DeleteAllOf", "DeleteCollection"}, selector.Sel.Name) &&
			!isOf(selector, "controllerutil") && !isOf(selector, "slices") {
			all = append(all, call)
		}
		return true
	})
	return all
}

// isOf reports whether a selector belongs to a package or variable of that name.
func isOf(selector *ast.SelectorExpr, name string) bool {
	of, isName := selector.X.(*ast.Ident)
	return isName && of.Name == name
}

// TestTheHubTakesNothingFromAMemberWithoutACause finds whatever deletes in the packages that
// deliver. Only package removal may delete what a member has.
func TestTheHubTakesNothingFromAMemberWithoutACause(t *testing.T) {
	others := map[string]string{ // what they delete is not what a member has
		// a Secret with values, with its BundleDeployment or because there are none any more
		"internal/hub/bundles/bundle/act.go":     "Delete",
		"internal/hub/bundles/bundle/content.go": "DeleteByUID", // a Content that nothing refers to
		// a copy in a member namespace; the release on the member changes with its deployment
		"internal/hub/bundles/bundle/downstream.go": "DeleteByUID",
		"internal/hub/placement/statuscopy.go":      "Delete",      // the copy of a status
		"internal/hub/placement/bindingwrites.go":   "DeleteByUID", // a binding, which only shows what a Work says
		"internal/hub/placement/versions.go":        "DeleteByUID", // a version of what is selected, on the hub
		// a binding or snapshot of KubeFleet's hub, when all members have lost the placement
		"internal/hub/placement/leftovers.go": "DeleteByUID",
	}
	found := map[string]bool{}
	for _, f := range goFiles(t) {
		if !within(f.dir(), "internal/hub/bundles/bundle") && !within(f.dir(), "internal/hub/placement") &&
			f.name != "internal/hub/members/membercluster/empty.go" {
			continue
		}
		for _, call := range deletions(f) {
			selector := call.Fun.(*ast.SelectorExpr)
			if isOf(selector, "removal") {
				found[f.dir()] = true
			} else if others[f.name] != selector.Sel.Name {
				t.Errorf("%s: %s deletes without a cause: use removal.Delete", f.files.Position(call.Pos()), selector.Sel.Name)
			}
		}
	}
	if !found["internal/hub/bundles/bundle"] || !found["internal/hub/placement"] {
		t.Errorf("removal.Delete is called in %v only", found)
	}
}

// TestTheAgentDeletesOnlyWithACause finds whatever deletes on a member. Only package removal may
// delete what was delivered; the others delete what is named here.
func TestTheAgentDeletesOnlyWithACause(t *testing.T) {
	others := map[string]string{
		"internal/agent/local/local.go":        "the bootstrap Secret, of a version that was read, after the agent has joined",
		"internal/deploy/release/remove.go":    "the history of a release, of which nothing is left or which is kept",
		"internal/deploy/release/installed.go": "the revision of a failed upgrade of the agent, when a user has uninstalled the agent",
		"internal/deploy/work/remove.go":       "an AppliedWork, by UID, when nothing that it owns has to go",
		"internal/deploy/removal/removal.go":   "it is the one way",
	}
	found := map[string]bool{}
	for _, f := range goFiles(t) {
		if !within(f.dir(), "internal/deploy") && !within(f.dir(), "internal/agent") {
			continue
		}
		for _, call := range deletions(f) {
			selector := call.Fun.(*ast.SelectorExpr)
			if isOf(selector, "removal") {
				found[f.dir()] = true
			} else if others[f.name] == "" {
				t.Errorf("%s deletes without a cause: use removal.Delete", f.files.Position(call.Pos()))
			} else {
				found[f.name] = true
			}
		}
	}
	for name := range others {
		if !found[name] && name != "internal/deploy/removal/removal.go" {
			t.Errorf("%s deletes nothing any more", name)
		}
	}
	if !found["internal/deploy/release"] || !found["internal/deploy/work"] {
		t.Errorf("removal.Delete is called in %v only", found)
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		documented[file.dir()] = documented[file.dir()] || file.syntax.Doc != nil
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			t.Errorf("package %s has no comment that says what it is for", dir)
		}
	}
}

func TestEveryAPIFieldIsDocumented(t *testing.T) {
	for _, file := range goFiles(t) {
		if !strings.HasPrefix(file.name, "api/") || strings.Contains(file.name, "zz_generated") {
			continue
		}
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			spec, isType := node.(*ast.TypeSpec)
			if !isType {
				return true
			}
			// The four parts of every API object, and the items of a list, are the same everywhere.
			if structure, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range structure.Fields.List {
					for _, name := range field.Names {
						if name.IsExported() && !slices.Contains([]string{"Spec", "Status", "Items"}, name.Name) && !saysSomething(field.Doc) {
							t.Errorf("%s: %s.%s has no comment", file.files.Position(field.Pos()), spec.Name, name.Name)
						}
					}
				}
			}
			return true
		})
	}
}

// saysSomething reports whether a comment has a line that is not a marker.
func saysSomething(comment *ast.CommentGroup) bool {
	if comment == nil {
		return false
	}
	for _, line := range strings.Split(comment.Text(), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			return true
		}
	}
	return false
}

func TestFilesAreShort(t *testing.T) {
	for _, file := range goFiles(t) {
		limit := 350
		if filepath.Base(file.name) == "main.go" && !strings.Contains(file.name, "internal/") {
			limit = 40
		}
		if count := lines(file.data); count > limit && !isGenerated(file.data) {
			t.Errorf("%s has %d lines, more than %d: it wants to be two", file.name, count, limit)
		}
	}
	if count := lines(read(t, "Makefile")); count > 100 {
		t.Errorf("Makefile has %d lines, more than 100: move what is long to hack/", count)
	}
}

func TestFunctionsAreShort(t *testing.T) {
	const limit = 60
	for _, file := range goFiles(t) {
		if isGenerated(file.data) {
			continue
		}
		for _, declaration := range file.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			if count := span(file.files, function.Body); count > limit {
				t.Errorf("%s: %s has %d lines, more than %d", file.files.Position(function.Pos()), function.Name, count, limit)
			}
		}
	}
}

func span(files *token.FileSet, node ast.Node) int {
	return files.Position(node.End()).Line - files.Position(node.Pos()).Line - 1
}

func TestDirectDependenciesAreExplained(t *testing.T) {
	explained := read(t, "docs/dependencies.md")
	for _, mod := range []string{"go.mod", "localkube/go.mod", "hack/images/go.mod"} {
		for _, line := range strings.Split(string(read(t, mod)), "\n") {
			fields := strings.Fields(strings.TrimPrefix(line, "require "))
			if len(fields) != 2 || !strings.HasPrefix(fields[1], "v") || !strings.Contains(fields[0], ".") {
				continue
			}
			if !bytes.Contains(explained, []byte("`"+fields[0]+"`")) {
				t.Errorf("%s requires %s directly and docs/dependencies.md does not say why", mod, fields[0])
			}
		}
	}
}

func TestNoFileNamesAMachine(t *testing.T) {
	// Pieced together, so that this file does not find itself.
	forbidden := regexp.MustCompile(`(^|[\s"'=:(` + "`" + `])/(` + "wo" + `rk|ro` + `ot|ho` + `me/[a-z]+)(/|\b)|pro` +
		`xy\.golang\.org|reg` + `istry\.npmjs`)
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, "go.sum") {
			continue
		}
		for number, line := range strings.Split(string(read(t, name)), "\n") {
			if forbidden.MatchString(line) {
				t.Errorf("%s:%d names a path or host of somebody's machine: %s", name, number+1, strings.TrimSpace(line))
			}
		}
	}
}

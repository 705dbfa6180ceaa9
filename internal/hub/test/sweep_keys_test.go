package hub_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// isKey matches the keys of labels and annotations that have a prefix.
var isKey = regexp.MustCompile(`^[a-z0-9.-]+/[A-Za-z0-9._-]+$`)

// hubKeys returns the keys of all labels and annotations that the sources of the API and of the hub
// declare as constants.
func hubKeys(t *testing.T) []string {
	t.Helper()
	keys := map[string]bool{}
	for _, root := range []string{"../../../api", "..", "../../naming", "../../kube"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if declared, ok := node.(*ast.ValueSpec); ok {
					addKeys(keys, declared)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) < 30 {
		t.Fatalf("found %d keys only: %v", len(keys), keys)
	}
	return slices.Sorted(maps.Keys(keys))
}

// addKeys adds the keys among the values of a declaration.
func addKeys(keys map[string]bool, declared *ast.ValueSpec) {
	for i, value := range declared.Values {
		name := strings.ToLower(declared.Names[i].Name)
		literal, ok := value.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING || strings.Contains(name, "finalizer") || strings.Contains(name, "secrettype") {
			continue
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && isKey.MatchString(text) {
			keys[text] = true
		}
	}
}

// TestTheSweepFindsTheKeysOfTheHub compares the keys with what a search for their prefix finds.
func TestTheSweepFindsTheKeysOfTheHub(t *testing.T) {
	keys := hubKeys(t)
	quoted := regexp.MustCompile(`"(muster/[a-z-]+)"`)
	for _, path := range []string{"../../../api/fleet/v1alpha1/wellknown.go", "../../../api/cluster/v1beta1/wellknown.go",
		"../../../api/placement/v1beta1/wellknown.go"} {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			found := quoted.FindStringSubmatch(line)
			if found != nil && !strings.Contains(line, "SecretType") && !strings.Contains(line, "Finalizer") && !slices.Contains(keys, found[1]) {
				t.Errorf("%s is missing: %s", cmp.Or(found[1], "a key"), line)
			}
		}
	}
}

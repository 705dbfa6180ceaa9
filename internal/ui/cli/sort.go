package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/view"
)

// formatColumns prints columns of the user's choice, as with kubectl.
const formatColumns = "custom-columns"

// sortableColumns are the columns of the members, for completion.
func sortableColumns() []string {
	var names []string
	for _, column := range kinds[0].columns {
		names = append(names, strings.ToLower(column))
	}
	return names
}

// sorter returns a function that sorts objects by the flag --sort-by: a column of the table, or a
// JSONPath expression.
func (g *get) sorter(k kind) (func([]client.Object), error) {
	if g.order == "" {
		return func([]client.Object) {}, nil
	}
	var key func(client.Object) string
	column := slices.IndexFunc(k.columns, func(name string) bool { return strings.EqualFold(name, g.order) })
	switch {
	case strings.EqualFold(g.order, "age"):
		key = func(o client.Object) string { return o.GetCreationTimestamp().UTC().Format(time.RFC3339) }
	case column >= 0:
		now := time.Now()
		key = func(o client.Object) string { return view.Row(o, now)[column] }
	case !strings.ContainsAny(g.order, ".{"):
		return nil, usageError{fmt.Errorf("--sort-by %s: %s have the columns %s; else give a JSONPath expression, such as .metadata.name",
			g.order, k.name, strings.ToLower(strings.Join(k.columns, ", ")))}
	default:
		field, err := newField(g.order)
		if err != nil {
			return nil, usageError{fmt.Errorf("--sort-by %s: %w", g.order, err)}
		}
		key = field.of
	}
	return func(objects []client.Object) {
		keys := map[client.Object]string{}
		for _, o := range objects {
			keys[o] = key(o)
		}
		slices.SortStableFunc(objects, func(a, b client.Object) int { return compareNatural(keys[a], keys[b]) })
	}, nil
}

// compareNatural compares numbers by their value, and other texts by their letters. Numbers come
// first.
func compareNatural(a, b string) int {
	x, notX := strconv.ParseFloat(a, 64)
	y, notY := strconv.ParseFloat(b, 64)
	switch {
	case notX == nil && notY == nil:
		return cmp.Compare(x, y)
	case notX == nil:
		return -1
	case notY == nil:
		return 1
	}
	return strings.Compare(a, b)
}

// field is a JSONPath expression.
type field struct{ path *jsonpath.JSONPath }

// newField parses an expression with or without braces and the first dot, as kubectl does.
func newField(expression string) (field, error) {
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(expression), "{"), "}")
	path := jsonpath.New("field").AllowMissingKeys(true)
	return field{path}, path.Parse("{." + strings.TrimPrefix(inner, ".") + "}")
}

// of returns the text of the field; "" if the object has none.
func (f field) of(o client.Object) string {
	var text bytes.Buffer
	var content any
	encoded, err := json.Marshal(o)
	if err != nil || json.Unmarshal(encoded, &content) != nil || f.path.Execute(&text, content) != nil {
		return ""
	}
	return text.String()
}

// columns prints the columns of --output custom-columns.
type columns struct {
	names    []string
	fields   []field
	noHeader bool
}

// newColumns parses columns such as NAME:.metadata.name,AGE:.metadata.creationTimestamp.
func newColumns(spec string, noHeader bool) (columns, error) {
	c := columns{noHeader: noHeader}
	for part := range strings.SplitSeq(spec, ",") {
		name, expression, ok := strings.Cut(part, ":")
		if !ok || name == "" || expression == "" {
			return c, usageError{fmt.Errorf("--output %s: %q is no column, such as NAME:.metadata.name", formatColumns, part)}
		}
		f, err := newField(expression)
		if err != nil {
			return c, usageError{fmt.Errorf("--output %s: column %s: %w", formatColumns, name, err)}
		}
		c.names, c.fields = append(c.names, name), append(c.fields, f)
	}
	return c, nil
}

func (c columns) print(out io.Writer, objects []client.Object) error {
	lines := printers.GetNewTabWriter(out)
	write := func(cells []string) error { return printers.WriteEscaped(lines, strings.Join(cells, "\t")+"\n") }
	if !c.noHeader {
		if err := write(c.names); err != nil {
			return err
		}
	}
	for _, o := range objects {
		var cells []string
		for _, f := range c.fields {
			cells = append(cells, cell(cmp.Or(f.of(o), "<none>"), maxCell))
		}
		if err := write(cells); err != nil {
			return err
		}
	}
	return lines.Flush()
}

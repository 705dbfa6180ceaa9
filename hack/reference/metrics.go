package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// metric is a metric defined in the source.
type metric struct {
	name, kind, help string
	labels           []string
}

// metrics returns the page of the metrics of hub, agent and dashboard. It finds them in the source
// by NewDesc, and by the options of gauges, counters and histograms.
func metrics() (string, error) {
	var page strings.Builder
	page.WriteString("# Metrics\n\n" +
		generated + `The Pods of the hub, the agents and the dashboard serve these metrics in the format of Prometheus.
They also serve the metrics of their process and of Go. The hub adds the metrics of controller-runtime, such as
reconciles by controller, work queues and requests to the API server.
` + "`leader_election_master_status{name=\"muster-hub\"}` is 1 in the leading replica. " +
		"[Monitor](../operations/monitoring.md) has the alerts.\n")
	for _, program := range []struct{ title, dir string }{
		{"The hub", "internal/hub"}, {"The agent", "internal/agent"}, {"The dashboard", "internal/ui/dashboard"},
	} {
		found, err := metricsOf(program.dir)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			return "", fmt.Errorf("there are no metrics in %s", program.dir)
		}
		fmt.Fprintf(&page, "\n## %s\n\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n", program.title)
		for _, m := range found {
			labels := make([]string, len(m.labels))
			for i, label := range m.labels {
				labels[i] = code(label)
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(labels, ", "), cell(m.help))
		}
	}
	return page.String(), nil
}

func metricsOf(dir string) ([]metric, error) {
	var found []metric
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if call, is := node.(*ast.CallExpr); is {
				if m := metricOf(call); m.name != "" {
					found = append(found, m)
				}
			}
			return true
		})
		return nil
	})
	slices.SortFunc(found, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return found, err
}

// metricOf returns the metric defined by a call such as
// prometheus.NewGaugeVec(prometheus.GaugeOpts{...}, labels); without a name, if the call defines
// none.
func metricOf(call *ast.CallExpr) metric {
	function, isSelector := call.Fun.(*ast.SelectorExpr)
	if of, named := identifier(function); !isSelector || !named || of != "prometheus" || len(call.Args) == 0 {
		return metric{}
	}
	if function.Sel.Name == "NewDesc" && len(call.Args) == 4 {
		m := metric{name: text(call.Args[0]), help: text(call.Args[1]), labels: texts(call.Args[2]), kind: "gauge"}
		if strings.HasSuffix(m.name, "_total") {
			m.kind = "counter"
		}
		return m
	}
	options, isLiteral := call.Args[0].(*ast.CompositeLit)
	if !isLiteral {
		return metric{}
	}
	kind, vector := strings.CutSuffix(strings.TrimPrefix(function.Sel.Name, "New"), "Vec")
	m := metric{kind: strings.ToLower(kind)}
	for _, element := range options.Elts {
		if pair, is := element.(*ast.KeyValueExpr); is {
			switch key, _ := pair.Key.(*ast.Ident); key.Name {
			case "Name":
				m.name = text(pair.Value)
			case "Help":
				m.help = text(pair.Value)
			}
		}
	}
	if vector && len(call.Args) == 2 {
		m.labels = texts(call.Args[1])
	}
	return m
}

func identifier(selector *ast.SelectorExpr) (string, bool) {
	if selector == nil {
		return "", false
	}
	name, is := selector.X.(*ast.Ident)
	if !is {
		return "", false
	}
	return name.Name, true
}

func text(expression ast.Expr) string {
	literal, is := expression.(*ast.BasicLit)
	if !is {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}

func texts(expression ast.Expr) []string {
	list, is := expression.(*ast.CompositeLit)
	if !is {
		return nil
	}
	var all []string
	for _, element := range list.Elts {
		all = append(all, text(element))
	}
	return all
}

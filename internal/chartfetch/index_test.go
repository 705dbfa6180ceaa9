package chartfetch

import (
	"fmt"
	"strings"
	"testing"
)

// large is an index with many charts, in the form of helm repo index. Each chart has the versions
// 1.0.0 to 1.19.0.
func large(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  chart-%d:\n", i)
		for version := range 20 {
			fmt.Fprintf(&text, "  - apiVersion: v2\n    description: |\n      entries:\n        chart-7:\n\n    name: chart-%d\n"+
				"    urls:\n    - https://charts.example/chart-%d-1.%d.0.tgz\n    version: 1.%d.0\n", i, i, version, version)
		}
	}
	text.WriteString("generated: \"2026-01-01T00:00:00Z\"\n")
	return text.String()
}

func TestTheVersionsOfAChartInALargeIndex(t *testing.T) {
	yaml := large(t)
	entry := func(i int) string {
		return fmt.Sprintf(`"chart-%d":[%s]`, i, strings.TrimSuffix(strings.Repeat(
			fmt.Sprintf(`{"name":"chart-%d","version":"1.%d.0","urls":["a"],"keywords":["x","y","z"]},`, i, i%7), 40), ","))
	}
	var entries []string
	for i := range 1000 {
		entries = append(entries, entry(i))
	}
	flow := "entries: {" + strings.Join(entries, ",") + "}\n"
	json := `{"apiVersion":"v1","entries":{` + strings.Join(entries, ",") + `},"generated":"now"}`
	many := "entries:\n  chart-7:\n" + strings.Repeat("  - {name: chart-7, version: 1.0.0}\n", 60_000)
	for name, row := range map[string]struct{ text, want string }{
		"as Helm writes it":                   {yaml, "1.19.0"},
		"with a quoted key":                   {strings.Replace(yaml, "  chart-7:\n  -", "  \"chart-7\":\n  -", 1), "1.19.0"},
		"with deeper entries":                 {strings.ReplaceAll(yaml, "\n  ", "\n     "), "1.19.0"},
		"with line ends of Windows":           {strings.ReplaceAll(yaml, "\n", "\r\n"), "1.19.0"},
		"without the chart":                   {strings.ReplaceAll(yaml, "  chart-7:\n  -", "  chart-x:\n  -"), "no chart name found"},
		"in JSON":                             {json, "1.0.0"},
		"in JSON without the chart":           {strings.ReplaceAll(json, `"chart-7":`, `"chart-x":`), "no chart name found"},
		"in JSON, cut off":                    {json[:len(json)/2], "it is too large, and not in the form of helm repo index"},
		"in another style of YAML":            {flow, "not in the form of helm repo index"},
		"with too many versions of the chart": {many, "the versions of chart chart-7: the document"},
	} {
		index, err := parseIndex([]byte(row.text), "chart-7")
		got := fmt.Sprint(err)
		if err == nil {
			found, err := index.Get("chart-7", "")
			if got = fmt.Sprint(err); err == nil {
				got = found.Version
			}
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

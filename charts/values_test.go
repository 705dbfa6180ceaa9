package charts_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/muster-fleet/muster/charts"
)

func TestAMistypedKeyIsRefusedAndTheNearestIsNamed(t *testing.T) {
	right := agent(valuesOfToken(t), "apiServerURL=https://hub")
	for name, c := range map[string]struct {
		chart helm
		set   string
		want  string
	}{
		"the hub's URL": {hub(""), "apiServerUrl=https://hub", "apiServerUrl is no value of this chart. Did you mean apiServerURL?"},
		"below a key": {hub(""), "registration.maxWaiting=3",
			"registration.maxWaiting is no value of this chart. Did you mean registration.maxWaitingPer"},
		"the URL of an agent":      {right, "apiServerUrl=https://hub", "Did you mean apiServerURL?"},
		"a group of an agent":      {right, "fleetAgents.delivery=false", "fleetAgents is no value of this chart. Did you mean fleetAgent?"},
		"a value of an agent":      {right, "fleetAgent.toleration={}", "Did you mean fleetAgent.tolerations?"},
		"the name of a member":     {member(), "config.memberClustername=web", "Did you mean config.memberClusterName?"},
		"another chart's":          {member(), "image.imagePullPolicy=Never", "Did you mean image.pullPolicy?"},
		"nothing like it is known": {hub(""), "zzz=1", "zzz is no value of this chart. Leave it out"},
	} {
		c.chart.set = append(c.chart.set[:len(c.chart.set):len(c.chart.set)], c.set)
		if _, err := c.chart.render(t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
	hub("", "zzz=null").mustRender(t)
}

// Null takes away what the chart has by default, and so does --reuse-values with a release of a
// chart that did not have the value yet.
func TestAValueThatIsTakenAwayIsNamedOrNotMissed(t *testing.T) {
	right := agent(valuesOfToken(t), "apiServerURL=https://hub")
	for key, c := range map[string]struct {
		chart helm
		want  string
	}{
		"inventory":     {hub(""), "missing property 'inventory'"},
		"flowControl":   {hub(""), "missing property 'flowControl'"},
		"controller":    {hub(""), "missing property 'controller'"},
		"networkPolicy": {hub(""), "missing property 'networkPolicy'"},
		"apiServerURL":  {hub(""), ""},
		"fleetAgent":    {right, "missing property 'fleetAgent'"},
		"internal":      {right, "missing property 'internal'"},
		"config":        {member(), "missing property 'config'"},
		"secret":        {member(), "missing property 'secret'"},
	} {
		c.chart.set = append(c.chart.set[:len(c.chart.set):len(c.chart.set)], key+"=null")
		if _, err := c.chart.render(t); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s:\ngot  %v\nwant %s", key, err, c.want)
		}
	}
}

// The hub upgrades agents with the values that their users have set, long ago maybe: those must
// not keep an agent old.
func TestAnAgentThatTheHubLooksAfterIsUpgradedWithWhateverValuesItHas(t *testing.T) {
	joined := agent(valuesOfToken(t), "apiServerURL=https://hub", "fleetAgents.delivery=false")
	joined.set = append(joined.set, "internal.joinedWith="+digestOfToken(t))
	if notes := joined.mustRender(t).notes; !strings.Contains(notes, "ignores them: fleetAgents") {
		t.Errorf("notes do not name it:\n%s", notes)
	}
}

// digestOfToken returns the digest of the token in valuesOfToken.
func digestOfToken(t *testing.T) string {
	t.Helper()
	var values struct{ Token string }
	if err := yaml.Unmarshal([]byte(valuesOfToken(t)), &values); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(values.Token)))
}

// A template can read neither the schema nor the defaults of its chart.
func TestTheListsOfKnownValuesAreWhatTheSchemasHave(t *testing.T) {
	type properties map[string]struct {
		Ref        string         `json:"$ref"`
		Properties map[string]any `json:"properties"`
	}
	shared := ""
	for _, chart := range []string{"fleet", "fleet-agent", "member-agent"} {
		var s struct {
			Defs       properties `json:"$defs"`
			Properties properties `json:"properties"`
		}
		text, err := fs.ReadFile(charts.FS, chart+"/values.schema.json")
		if err == nil {
			err = json.Unmarshal(text, &s)
		}
		helpers, readErr := fs.ReadFile(charts.FS, chart+"/templates/_values.tpl")
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		_, list, _ := strings.Cut(string(helpers), `.values" -}}`)
		list, rest, _ := strings.Cut(list, "{{- end }}")
		known := strings.Fields(list)
		for key, property := range s.Properties {
			if !slices.Contains(known, key) {
				t.Errorf("chart %s does not know %s", chart, key)
			}
			if property.Ref != "" {
				property = s.Defs[strings.TrimPrefix(property.Ref, "#/$defs/")]
			}
			for child := range property.Properties {
				if key != "global" && !slices.Contains(known, key+"."+child) {
					t.Errorf("chart %s does not know %s.%s", chart, key, child)
				}
			}
		}
		_, code, _ := strings.Cut(strings.ReplaceAll(rest, chart+".", "CHART."), "{{- end }}")
		if shared == "" {
			shared = code
		}
		if code != shared {
			t.Errorf("chart %s finds unknown values by another template than chart fleet", chart)
		}
	}
}

package fleetyaml

import (
	"strings"
	"testing"
)

func TestAFleetYAMLHasTheOptionsOfABundle(t *testing.T) {
	file, err := Parse("fleet.yaml", []byte(`
name: web
labels: {app: web}
defaultNamespace: shop
helm:
  chart: ./chart
  values: &values {replicas: 1, list: [1, {a: b}]}
  waitForJobs: yes
rolloutStrategy: {maxUnavailable: 10%, maxUnavailablePartitions: 1}
dependsOn: [{selector: {matchLabels: {app: db}}}]
targetCustomizations:
- name: prod
  clusterSelector: {matchLabels: {env: prod}}
  helm: {values: {<<: *values, replicas: 3}}
- name: none
  clusterGroup: edge
  doNotDeploy: true
overrideTargets: [{clusterSelector: {}}]
`))
	switch {
	case err != nil:
		t.Fatal(err)
	case file.Name != "web" || file.Labels["app"] != "web" || file.DefaultNamespace != "shop" || !file.Helm.WaitForJobs:
		t.Errorf("%+v", file)
	case string(file.TargetCustomizations[0].Helm.Values.Raw) != `{"list":[1,{"a":"b"}],"replicas":3}`:
		t.Errorf("%s", file.TargetCustomizations[0].Helm.Values.Raw)
	case !file.TargetCustomizations[1].DoNotDeploy || len(file.OverrideTargets) != 1 || file.OverrideTargets[0].ClusterSelector == nil:
		t.Errorf("%+v", file)
	}
	if file, err := Parse("fleet.yaml", []byte("# only a comment\n")); err != nil || file.Name != "" {
		t.Errorf("%+v, %v", file, err)
	}
}

func TestAWrongFleetYAMLIsAnErrorWithFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"helm:\n  relaseName: web\n":                   "web/fleet.yaml:2: unknown key helm.relaseName; did you mean releaseName?",
		"targetCustomizations: [clusterSelektor: 1]\n": "fleet.yaml:1: unknown key targetCustomizations[0].clusterSelektor; did you mean",
		"defaultNamespace: a\ndefaultNamespace: b\n":   "web/fleet.yaml:2: the key defaultNamespace occurs twice",
		"labels:\n  build: 17\n":                       `web/fleet.yaml:2: labels.build must be a text: write "17", with the quotes`,
		"helm:\n  version: 1.2\n":                      `web/fleet.yaml:2: helm.version must be a text: write "1.2", with the quotes`,
		"labels:\n  on: yes\n":                         `web/fleet.yaml:2: labels.on must be a text: write "yes", with the quotes`,
		"paused: maybe\n":                              "web/fleet.yaml:1: paused is a text here, and must be true or false",
		"helm: {timeoutSeconds: 1m}\n":                 "web/fleet.yaml:1: helm.timeoutSeconds is a text here, and must be a whole number",
		"helm:\n- a\n":                                 "web/fleet.yaml:2: helm is a list here, and must be a map",
		"helm: {values: [1]}\n":                        "web/fleet.yaml:1: helm.values is a list here, and must be a map",
		"dependsOn: {name: a}\n":                       "web/fleet.yaml:1: dependsOn is a map here, and must be a list",
		"rolloutStrategy: {maxUnavailable: true}\n":    "fleet.yaml:1: rolloutStrategy.maxUnavailable is a number or a percentage",
		"- a\n":                    "web/fleet.yaml:1: the document is a list here, and must be a map",
		"name: a\n---\nname: b\n":  "web/fleet.yaml:2: a second document begins: write one document",
		"name: a\nresources: []\n": "web/fleet.yaml:2: a fleet.yaml has no key resources: the files of the directory are the resources",
		"imageScans: []\n":         "web/fleet.yaml:1: a fleet.yaml has no key imageScans: Muster scans no registries",
		"name: [\n":                "web/fleet.yaml: yaml: line ",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a]\n":     "web/fleet.yaml:1: unknown key a",
		"helm: {values: &v {a: *v}}\n":                         "web/fleet.yaml: ",
		"one: 1\ntwo: 2\nthree: 3\nhelm: {templateValue: 1}\n": "web/fleet.yaml:4: unknown key helm.templateValue; did you mean templateValues?",
	} {
		if _, err := Parse("web/fleet.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}
	}
}

package report

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetfacts "github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// customFacts are the facts reported by users of the member.
type customFacts struct {
	// answered is set once their sources have been listed, or cannot be.
	answered bool
	values   map[string]string
}

// custom is the store of the custom facts: ClusterProperties (KEP-2149), and the data of a
// ConfigMap. A ClusterProperty takes precedence.
type custom struct {
	properties *kubeclient.Store[*kubeclient.ClusterProperty]
	byName     map[string]string
	configMap  *kubeclient.Store[*corev1.ConfigMap]
	data       map[string]string
	// propertiesTried and configMapTried are set after the first attempt to list a source.
	propertiesTried, configMapTried bool
}

func newCustom(changed chan struct{}) *custom {
	c := &custom{byName: map[string]string{}}
	c.properties = &kubeclient.Store[*kubeclient.ClusterProperty]{
		Changed: changed, Strip: stripProperty, InPages: true,
		Put: c.put, Drop: func(p *kubeclient.ClusterProperty) { delete(c.byName, p.Name) },
		Reset: func() { c.propertiesTried = true; clear(c.byName) },
	}
	c.configMap = &kubeclient.Store[*corev1.ConfigMap]{
		Changed: changed,
		Put: func(m *corev1.ConfigMap) bool {
			differs := !maps.Equal(c.data, m.Data)
			c.data = m.Data
			return differs
		},
		Drop: func(*corev1.ConfigMap) { c.data = nil }, Reset: func() { c.configMapTried = true; c.data = nil },
	}
	return c
}

// put stores a property permitted in a report.
func (c *custom) put(property *kubeclient.ClusterProperty) bool {
	before := c.byName[property.Name]
	delete(c.byName, property.Name)
	if fleetfacts.Admits(property.Name, property.Spec.Value) {
		c.byName[property.Name] = property.Spec.Value
	}
	return before != c.byName[property.Name]
}

// stripProperty drops a value not permitted in a report.
func stripProperty(o *kubeclient.ClusterProperty) *kubeclient.ClusterProperty {
	stripped := &kubeclient.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion}}
	if fleetfacts.Admits(o.Name, o.Spec.Value) {
		stripped.Spec = o.Spec
	}
	return stripped
}

// facts returns the custom facts to report.
func (c *custom) facts() customFacts {
	all := map[string]string{}
	c.configMap.Lock()
	maps.Copy(all, c.data)
	answered := c.configMapTried
	c.configMap.Unlock()
	c.properties.Lock()
	defer c.properties.Unlock()
	maps.Copy(all, c.byName)
	return customFacts{answered: answered && c.propertiesTried, values: fleetfacts.Custom(all)}
}

// propertiesWatched and configMapWatched handle the result of an attempt to watch. The report does
// not wait for unreadable facts.
func (c *custom) propertiesWatched(err error) {
	if err != nil {
		_ = c.properties.Change(func() { c.propertiesTried = true }) // never fails
	}
}

func (c *custom) configMapWatched(err error) {
	if err != nil {
		_ = c.configMap.Change(func() { c.configMapTried = true }) // never fails
	}
}

package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnounceVersion emits an Event if a component of a member has changed its version. An unknown
// version does not count.
func (c *Controller) AnnounceVersion(record client.Object, reason, of, was, is string) {
	if was != "" && is != "" && was != is {
		c.Recorder.Eventf(record, nil, corev1.EventTypeNormal, reason, "Assess", "%s has version %s, before %s", of, is, was)
	}
}

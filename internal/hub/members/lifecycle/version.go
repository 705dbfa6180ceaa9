package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KubernetesVersionChanged is the reason of the Event that a member has another version of Kubernetes.
const KubernetesVersionChanged = "KubernetesVersionChanged"

// AnnounceVersion writes an Event if something of a member is of another version than before. A version that is not known is none.
func (c *Controller) AnnounceVersion(record client.Object, reason, of, was, is string) {
	if was != "" && is != "" && was != is {
		c.Recorder.Eventf(record, nil, corev1.EventTypeNormal, reason, "Judge", "%s is of version %s now, after %s", of, is, was)
	}
}

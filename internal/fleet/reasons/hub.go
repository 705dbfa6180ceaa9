package reasons

// Reasons of Events about the hub itself, and of kinds not implemented by it.
const (
	// ClusterSetMissing: the namespace of the ClusterProfiles lacks the labels for its ClusterSet; an
	// Event of the Namespace.
	ClusterSetMissing = "ClusterSetMissing"
	// ConfigInvalid: the hub's settings are not valid, and the previous ones stay in force; an Event
	// of the ConfigMap.
	ConfigInvalid = "ConfigInvalid"
	// ConfigMissing: the ConfigMap with the hub's settings does not exist, and the previous ones stay
	// in force; an Event of the ConfigMap.
	ConfigMissing = "ConfigMissing"
	// KindNotImplemented: the hub does not implement the kind; Supported of a GitRepo or a similar
	// object.
	KindNotImplemented = "KindNotImplemented"
	// NotificationsFail: a receiver rejects notifications, and the hub tries again; an Event of the
	// ConfigMap.
	NotificationsFail = "NotificationsFail"
	// NotificationsSent: a receiver accepts notifications again; an Event of the ConfigMap.
	NotificationsSent = "NotificationsSent"
	// StatusNotWritten: the API server refused the status, so the object shows an older one; an
	// Event of the object.
	StatusNotWritten = "StatusNotWritten"
)

package reasons

// Reasons of Events about the hub itself, and of kinds that it does not implement.
const (
	// ClusterSetMissing: the namespace of the ClusterProfiles lacks the labels that name its
	// ClusterSet; an Event of the Namespace.
	ClusterSetMissing = "ClusterSetMissing"
	// ConfigInvalid: the hub's settings are not valid, and those before stay in force; an Event
	// of the ConfigMap.
	ConfigInvalid = "ConfigInvalid"
	// ConfigMissing: the ConfigMap with the hub's settings does not exist, and those before stay
	// in force; an Event of the ConfigMap.
	ConfigMissing = "ConfigMissing"
	// KindNotImplemented: the hub does not implement the kind; Supported of a GitRepo and of
	// other such objects.
	KindNotImplemented = "KindNotImplemented"
	// NotificationsFail: a receiver of notifications does not take them, and the hub tries again; an
	// Event of the ConfigMap.
	NotificationsFail = "NotificationsFail"
	// NotificationsSent: a receiver of notifications takes them again; an Event of the ConfigMap.
	NotificationsSent = "NotificationsSent"
	// StatusNotWritten: the API server refused the status, so the object shows an older one; an
	// Event of the object.
	StatusNotWritten = "StatusNotWritten"
)

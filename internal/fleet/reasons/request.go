package reasons

// Reasons of ClusterRegistrations.
const (
	// AmbiguousClientID: several Clusters of the workspace have the client ID of the request;
	// status of a ClusterRegistration.
	AmbiguousClientID = "AmbiguousClientID"
	// ApprovedTooEarly: the request was created with its approval, before a user could review it;
	// status of a ClusterRegistration.
	ApprovedTooEarly = "ApprovedTooEarly"
	// ClientIDMissing: the request has no client ID; status of a ClusterRegistration.
	ClientIDMissing = "ClientIDMissing"
	// ClientIDTooLong: the client ID of the request is too long; status of a
	// ClusterRegistration.
	ClientIDTooLong = "ClientIDTooLong"
	// ClusterLeaving: the Cluster of the request is being deleted, and the request waits; status of a
	// ClusterRegistration.
	ClusterLeaving = "ClusterLeaving"
	// Failed: the hub could not write something and tries again; status of a
	// ClusterRegistration, Ready of a ClusterRegistrationToken.
	Failed = "Failed"
	// Granted: the request is granted; status of a ClusterRegistration.
	Granted = "Granted"
	// HolderAlive: the request would displace a live agent of the Cluster; status of a
	// ClusterRegistration.
	HolderAlive = "HolderAlive"
	// HolderLost: the request would displace a lost agent of the Cluster; status of a
	// ClusterRegistration.
	HolderLost = "HolderLost"
	// InvalidAnswerKey: the request has no usable key for a sealed answer; status of a
	// ClusterRegistration.
	InvalidAnswerKey = "InvalidAnswerKey"
	// InvalidLabels: labels are not valid; status of a ClusterRegistration for its cluster
	// labels, Ready of a ClusterRegistrationToken for its spec.
	InvalidLabels = "InvalidLabels"
	// InvalidSignature: the key in the request did not make its signature; status of a
	// ClusterRegistration.
	InvalidSignature = "InvalidSignature"
	// KeyProved: the request proves the key of its Cluster and needs no token; status of a
	// ClusterRegistration before anything is done.
	KeyProved = "KeyProved"
	// NameTaken: a Cluster with another client ID has the name of the new Cluster, or another Bundle
	// has the name of the agent's Bundle. Status of a ClusterRegistration, AgentUpToDate of a Cluster.
	NameTaken = "NameTaken"
	// NotAttributed: the hub does not know the token of the request, so the request needs an
	// approval; Attributed and status of a ClusterRegistration.
	NotAttributed = "NotAttributed"
	// OlderThanPolicy: the request is older than the admission policy for authors; Attributed of a
	// ClusterRegistration.
	OlderThanPolicy = "OlderThanPolicy"
	// OtherHub: the request was made for a hub with another CA; status of a ClusterRegistration.
	OtherHub = "OtherHub"
	// PolicyMissing: the admission policy for authors is missing; Attributed of a ClusterRegistration,
	// ResourceSelected and Overridden of a placement, and an Event.
	PolicyMissing = "PolicyMissing"
	// PolicyUnchecked: the hub could not check the effect of its admission policy; Attributed of a
	// ClusterRegistration.
	PolicyUnchecked = "PolicyUnchecked"
	// Preparing: the hub prepares the dependents of the object; status of a ClusterRegistration, Ready
	// of a ClusterRegistrationToken without credential.
	Preparing = "Preparing"
	// ReconnectRefused: the agent may not come back by its key and needs a token; status of a
	// ClusterRegistration.
	ReconnectRefused = "ReconnectRefused"
	// Replayed: the key of the Cluster has signed this request, or a later one, before; status
	// of a ClusterRegistration.
	Replayed = "Replayed"
	// RequesterUnknown: the request does not name its author; Attributed of a ClusterRegistration.
	RequesterUnknown = "RequesterUnknown"
	// Superseded: a newer request of the same client ID has replaced the request; status of a
	// ClusterRegistration.
	Superseded = "Superseded"
	// TokenBoundElsewhere: the token registers only another Cluster or client ID; status of a
	// ClusterRegistration.
	TokenBoundElsewhere = "TokenBoundElsewhere"
	// TokenExpired: the token of the request has expired; status of a ClusterRegistration.
	TokenExpired = "TokenExpired"
	// TokenInvalid: the token of the request is not valid as it is; status of a ClusterRegistration.
	TokenInvalid = "TokenInvalid"
	// TokenNotFound: the token of the request does not exist; status of a ClusterRegistration.
	TokenNotFound = "TokenNotFound"
	// TokenNotIssued: Kubernetes has not issued the token of the agent's account; status of a
	// ClusterRegistration.
	TokenNotIssued = "TokenNotIssued"
	// TokenUnknown: the request names no ClusterRegistrationToken; status of a
	// ClusterRegistration.
	TokenUnknown = "TokenUnknown"
	// TokenUsedUp: the token has reached its limit of Clusters; status of a ClusterRegistration.
	TokenUsedUp = "TokenUsedUp"
	// TooManyNewClusters: too many new Clusters of the token have sent no heartbeat; status of a
	// ClusterRegistration.
	TooManyNewClusters = "TooManyNewClusters"
	// TooManyRequests: too many requests of the token wait or were denied; status of a
	// ClusterRegistration, and an Event of the token.
	TooManyRequests = "TooManyRequests"
)

package reasons

// Reasons of ClusterRegistrationTokens.
const (
	// Expired: the token has expired; Ready of a ClusterRegistrationToken.
	Expired = "Expired"
	// InvalidApprovalExpression: the CEL expression for approvals is not valid; Ready of a
	// ClusterRegistrationToken.
	InvalidApprovalExpression = "InvalidApprovalExpression"
	// LifeShortened: the API server issues credentials with a shorter life than the token specifies;
	// TTLGranted of a ClusterRegistrationToken.
	LifeShortened = "LifeShortened"
	// InvalidRotation: an annotation about the rotation of the credential is not valid; Rotated of a
	// ClusterRegistrationToken.
	InvalidRotation = "InvalidRotation"
	// RotationDone: the credential was replaced as requested; Rotated of a ClusterRegistrationToken,
	// and the Event about it.
	RotationDone = "RotationDone"
	// SecretNameTaken: a Secret with the token's name has another owner; Ready of a
	// ClusterRegistrationToken.
	SecretNameTaken = "SecretNameTaken"
	// SettingsMissing: the hub has lost its settings and writes no values; Ready of a
	// ClusterRegistrationToken.
	SettingsMissing = "SettingsMissing"
	// TTLRequired: the hub does not accept tokens without an end; Ready of a
	// ClusterRegistrationToken.
	TTLRequired = "TTLRequired"
)

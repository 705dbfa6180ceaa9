package reasons

// Reasons of Works and of the manifests in them.
const (
	// AppliedByAnotherWork: another Work has applied the object; Applied of a manifest.
	AppliedByAnotherWork = "AppliedByAnotherWork"
	// AppliedWorkBeingDeleted: the AppliedWork is being deleted, and the deployer applies the
	// manifests again afterwards; Applied of a Work.
	AppliedWorkBeingDeleted = "AppliedWorkBeingDeleted"
	// AppliedWorkOfAnotherHub: the member has an AppliedWork of this name for another member
	// namespace; Applied of a Work.
	AppliedWorkOfAnotherHub = "AppliedWorkOfAnotherHub"
	// BeingDeleted: the object is being deleted on the member, and the deployer creates it again
	// afterwards; Applied of a manifest.
	BeingDeleted = "BeingDeleted"
	// Contested: another writer keeps changing the object, so the deployer corrects it less and less
	// often; Applied of a manifest.
	Contested = "Contested"
	// DifferencesFound: the object on the member differs from the manifest; DiffReported of a
	// manifest.
	DifferencesFound = "DifferencesFound"
	// Drifted: the object was changed on the member, and the placement leaves it so; Applied of a
	// manifest.
	Drifted = "Drifted"
	// FieldConflict: another writer owns fields of the manifest; Applied of a manifest.
	FieldConflict = "FieldConflict"
	// Forbidden: the deployer may not write the object; Applied of a manifest.
	Forbidden = "Forbidden"
	// ImmutableField: the manifest changes an immutable field; Applied of a manifest.
	ImmutableField = "ImmutableField"
	// InvalidManifest: the manifest is not a valid object; Applied of a manifest, and
	// ResourceSelected of a placement for a manifest in an envelope.
	InvalidManifest = "InvalidManifest"
	// KindNotServed: the member does not serve the kind of the object; Applied of a manifest.
	KindNotServed = "KindNotServed"
	// ManifestApplied: the object on the member matches the manifest; Applied of a manifest.
	ManifestApplied = "ManifestApplied"
	// ManifestAvailable: the object works; Available of a manifest.
	ManifestAvailable = "ManifestAvailable"
	// ManifestFailed: the object has failed for good, such as a Job; Available of a manifest.
	ManifestFailed = "ManifestFailed"
	// ManifestNotApplied: the object is not applied; Available of a manifest.
	ManifestNotApplied = "ManifestNotApplied"
	// ManifestNotAvailableYet: the object does not work yet; Available of a manifest.
	ManifestNotAvailableYet = "ManifestNotAvailableYet"
	// ManifestNotTrackable: the kind of the object does not show whether it works; Available of
	// a manifest.
	ManifestNotTrackable = "ManifestNotTrackable"
	// NamespaceMissing: the member lacks the namespace of the object, or is deleting it; Applied
	// of a manifest.
	NamespaceMissing = "NamespaceMissing"
	// NoDifference: the object on the member matches the manifest; DiffReported of a manifest.
	NoDifference = "NoDifference"
	// NotTakenOver: the object existed before, and the placement does not take objects over;
	// Applied of a manifest.
	NotTakenOver = "NotTakenOver"
	// OwnedByOthers: the object has an owner other than the Work; Applied of a manifest.
	OwnedByOthers = "OwnedByOthers"
	// QuotaExceeded: a quota of the member leaves no room for the object; Applied of a manifest.
	QuotaExceeded = "QuotaExceeded"
	// Rejected: the API server of the member refuses the object; Applied of a manifest.
	Rejected = "Rejected"
	// Removing: the objects of the Work are being removed; Applied of a Work.
	Removing = "Removing"
	// WorkOfAnotherMember: a label of the Work names another member; Applied of a Work.
	WorkOfAnotherMember = "WorkOfAnotherMember"
)

package reasons

import clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"

// Reasons of BundleDeployments.
const (
	// ChartUnreadable: the chart of the Bundle cannot be read; Deployed of a BundleDeployment.
	ChartUnreadable = "ChartUnreadable"
	// ChartVersionRefused: the version of the chart is not valid; Deployed of a
	// BundleDeployment.
	ChartVersionRefused = "ChartVersionRefused"
	// CRDConflict: a definition in crds/ of the chart belongs to another owner, or would lose a
	// stored version; Deployed of a BundleDeployment.
	CRDConflict = "CRDConflict"
	// CRDsDiffer: definitions on the member differ from crds/ of the chart; CRDsCurrent of a
	// BundleDeployment.
	CRDsDiffer = "CRDsDiffer"
	// ContentRefused: the deployer cannot decode the content from the hub; Deployed of a
	// BundleDeployment.
	ContentRefused = "ContentRefused"
	// ContentUnreadable: the Content cannot be read on the hub; Deployed of a BundleDeployment.
	ContentUnreadable = "ContentUnreadable"
	// CorrectionFailed: drift cannot be corrected; Deployed of a BundleDeployment.
	CorrectionFailed = "CorrectionFailed"
	// DeployFailed: Helm cannot install or upgrade the release; Deployed of a BundleDeployment.
	DeployFailed = "DeployFailed"
	// Deployed: the release is deployed; Deployed of a BundleDeployment.
	Deployed = "Deployed"
	// DeployerCrashed: the process for rendering the Bundle ended, because a template takes too much
	// memory or never ends; Deployed of a BundleDeployment.
	DeployerCrashed = "DeployerCrashed"
	// DownstreamResourceUnreadable: an object in downstreamResources cannot be read on the hub;
	// Deployed of a BundleDeployment.
	DownstreamResourceUnreadable = "DownstreamResourceUnreadable"
	// FieldNotImplemented: the deployer does not implement a field of the BundleDeployment; Supported
	// of a BundleDeployment.
	FieldNotImplemented = "FieldNotImplemented"
	// HubRestored: the hub was restored to a state before a delivery. The delivery stays; Pruned of a
	// Cluster, a MemberCluster or a report.
	HubRestored = "HubRestored"
	// Installed: the release is installed; Installed of a BundleDeployment.
	Installed = "Installed"
	// MoveFailed: the release has moved to another name or namespace, and the former one cannot be
	// removed; Deployed of a BundleDeployment.
	MoveFailed = "MoveFailed"
	// ObjectConflict: an object of the release belongs to another release; Deployed or Installed
	// of a BundleDeployment.
	ObjectConflict = "ObjectConflict"
	// ReleaseConflict: a release with the same name does not belong to the Bundle; Deployed of a
	// BundleDeployment.
	ReleaseConflict = "ReleaseConflict"
	// RemovalBlocked: objects of a release cannot be deleted or looked up; Pruned of a Cluster,
	// a MemberCluster or a report.
	RemovalBlocked = clusterv1beta1.ReasonRemovalBlocked
	// RemovalUnconfirmed: the hub has not confirmed the deletion of the BundleDeployment of a release;
	// Pruned of a Cluster, a MemberCluster or a report.
	RemovalUnconfirmed = clusterv1beta1.ReasonRemovalUnconfirmed
	// ResourcesInvalid: the resources of the Bundle do not make a chart; Deployed of a
	// BundleDeployment.
	ResourcesInvalid = "ResourcesInvalid"
	// Unwatched: the deployer does not watch the objects of the release; Monitored of a
	// BundleDeployment.
	Unwatched = "Unwatched"
	// ValuesInvalid: the values or options of the Bundle are not valid; Deployed of a
	// BundleDeployment.
	ValuesInvalid = "ValuesInvalid"
	// Watched: the deployer watches the objects of the release; Monitored of a BundleDeployment.
	Watched = "Watched"
)

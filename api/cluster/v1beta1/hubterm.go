package v1beta1

// HubTerm is the term of a hub, signed by the hub. Two hubs have the same key if one was restored
// from a backup of the other. Members then obey the higher term.
type HubTerm struct {
	// hub is the public Ed25519 key of the hub.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Hub []byte `json:"hub"`
	// term counts the promotions and the restores of the hub, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Term int64 `json:"term"`
	// cluster is the UID of the namespace kube-system on the hub's cluster.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Cluster string `json:"cluster"`
	// signature is the signature of term and cluster with the key of the hub.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Signature []byte `json:"signature"`
}

// HubInUse is an agent's address of the hub, with the failure if it is not the address in spec.hub.
type HubInUse struct {
	// apiServerURL is the URL of the hub in use.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	APIServerURL string `json:"apiServerURL,omitempty"`
	// apiServerCAHash is the hash of the CA in use, as in the status of a Cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`
	// agentTLSMode is strict or system-store, or insecure if the agent's settings say so.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	// observedGeneration is the metadata.generation of the spec that caused the failure.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// failure is the error of the last attempt to move to the address in spec.hub; the agent then
	// keeps apiServerURL. Empty after a success.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failure string `json:"failure,omitempty"`
}

// HubFallback is a further address of the hub for members.
type HubFallback struct {
	// apiServerURL is the URL of the hub's API server at this address, https://host[:port].
	// +required
	// +kubebuilder:validation:MaxLength=2048
	APIServerURL string `json:"apiServerURL"`
	// apiServerCA is a PEM bundle of the certificate authorities for this address; if empty, the
	// apiServerCA of the first address.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	APIServerCA string `json:"apiServerCA,omitempty"`
	// standbyToken is a token for this address, if a restored hub with other accounts can be there.
	// +optional
	StandbyToken *StandbyToken `json:"standbyToken,omitempty"`
}

// StandbyToken is a token of an API server for a restored hub, sealed to the key of one agent.
type StandbyToken struct {
	// id changes with the token and with the key.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`
	// sealed is the token, encrypted to the key of the agent.
	// +required
	// +kubebuilder:validation:MaxLength=16384
	Sealed []byte `json:"sealed"`
}

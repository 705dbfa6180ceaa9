package settings

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// testCA is a self-signed certificate made for this test; its key was thrown away.
const testCA = `-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUXA4lvw+bWdR501yqACkdtFAUgekwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwObXVzdGVyIHRlc3QgQ0EwIBcNMjYxMTIwMjAzOTQwWhgPMjEy
NjEwMjcyMDM5NDBaMBkxFzAVBgNVBAMMDm11c3RlciB0ZXN0IENBMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEjFunVF5qhtx1EWhmTt+zbsVPBLnoazEVhcXRE3Ua
duaQTbobkjqai5taBnCdMAZKmqhldOKVKxxx1+PUA/L5u6NTMFEwHQYDVR0OBBYE
FMuqF8CgDGYrjGh8vKwdDNi7wKcnMB8GA1UdIwQYMBaAFMuqF8CgDGYrjGh8vKwd
DNi7wKcnMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgd/6qWl1j
0YoEWGN2q7h/K9QnCiAeuWse1uv6TaqKzV0CIHntHY/1SA1iLrN3EtTbjqdSgycT
eFdjFtHs/dJDjNul
-----END CERTIFICATE-----
`

func TestParse(t *testing.T) {
	withURL := Default()
	withURL.APIServerURL, withURL.APIServerCA = "https://hub.example:6443", testCA
	short := Default()
	short.AgentTokenLifetime, short.AgentCheckinInterval = time.Hour, time.Minute
	ofAgents := Default()
	ofAgents.AgentTLSMode = TLSStrict
	ofAgents.Agent = Agent{
		Image: "registry/muster-agent:1", ImagePullPolicy: "Never", Registry: "registry", TLSMode: TLSStrict,
		GarbageCollectionInterval: time.Hour, PullSecrets: []string{"a", "b"},
	}
	moved := Default()
	moved.APIServerURL, moved.AgentTLSMode, moved.Agent.TLSMode = "https://hub.example", TLSStrict, TLSStrict
	elsewhere, also, off := Default(), Default(), Default()
	also.InventoryInFleetSystem = true
	decisions := Default()
	decisions.PlacementDecisions = true
	elsewhere.InventoryNamespace, elsewhere.InventoryClusterSet = "kueue-system", "prod"
	off.InventoryNamespace = ""
	bounded := Default()
	bounded.Registration = Registration{
		Displacement: DisplaceLost, RequestLifetime: 2 * time.Hour, MaxWaitingPerToken: 1, MaxWaitingPerWorkspace: 2, MaxQueuedPerToken: 3,
	}
	kept := Default()
	kept.Audit = Audit{MaxAge: 24 * time.Hour}
	trusting := Default()
	trusting.PlacementAuthorRights = AuthorRightsNamespaced
	unbraked := Default()
	unbraked.RemovalShare = 100
	patient := Default()
	patient.HealthCheck = HealthCheck{FailureThreshold: 3, SuccessThreshold: 1}
	cleaning := Default()
	cleaning.LostMembers = LostMembers{TaintAfter: 720 * time.Hour, RemoveAfter: 24 * time.Hour}
	local := Default()
	local.Bootstrap = Bootstrap{Namespace: "fleet-local", ClusterLabels: map[string]string{"env": "hub"}}
	local.Mappings.Local = "fleet-local"
	further := Default()
	further.APIServerURL = "https://hub"
	further.Fallbacks = Fallbacks{After: 90 * time.Second, Addresses: []clusterv1beta1.HubFallback{
		{APIServerURL: "https://two"}, {APIServerURL: "https://three", APIServerCA: testCA},
	}}
	mapped := Default()
	mapped.Mappings, mapped.ImportLoopback = Mappings{Open: true, ToLocal: true}, true
	for _, c := range []struct {
		name, text string
		want       Config
		problem    string
	}{
		{name: "nothing means the defaults", text: "", want: Default()},
		{name: "a patient health check", text: "healthCheck: {failureThreshold: 3}", want: patient},
		{name: "no result at all", text: "healthCheck: {successThreshold: 0}", problem: "healthCheck.successThreshold 0: want 1 to 60"},
		{name: "lost members", text: "lostMembers: {taintAfter: 720h, removeAfter: 24h}", want: cleaning},
		{name: "a taint too soon", text: "lostMembers: {taintAfter: 30m}", problem: "lostMembers.taintAfter 30m0s: want 0 or at least 1h0m0s"},
		{name: "a removal too soon", text: "lostMembers: {taintAfter: 1h, removeAfter: 1s}",
			problem: "lostMembers.removeAfter 1s: want 0 or at least 1m0s"},
		{name: "a removal without a taint", text: "lostMembers: {removeAfter: 24h}", problem: "lostMembers.removeAfter: set taintAfter, too"},
		{name: "a CA in base64, as upstream writes it", want: withURL,
			text: `{"apiServerURL":"https://hub.example:6443","apiServerCA":"` + base64.StdEncoding.EncodeToString([]byte(testCA)) + `"}`},
		{name: "a CA in PEM", want: withURL,
			text: "apiServerURL: https://hub.example:6443\napiServerCA: |\n  " + strings.ReplaceAll(testCA, "\n", "\n  ")},
		{
			name: "where members reach the hub, in the form that agents use", want: moved,
			text: `{"apiServerURL":" https://hub.example/ ","agentTLSMode":"strict"}`,
		},
		{name: "further addresses", want: further,
			text: `{"apiServerURL":"https://hub","apiServerFallbackAfter":"90s","apiServerFallbacks":[{"apiServerURL":"https://two/"},` +
				`{"apiServerURL":"https://three","apiServerCA":"` + base64.StdEncoding.EncodeToString([]byte(testCA)) + `"}]}`},
		{name: "further addresses without a first one", text: `{"apiServerFallbacks":[{"apiServerURL":"https://two"}]}`,
			problem: "apiServerFallbacks: set apiServerURL to the first address, too"},
		{name: "an address twice", text: `{"apiServerURL":"https://hub","apiServerFallbacks":[{"apiServerURL":"https://hub/"}]}`,
			problem: `apiServerFallbacks[0].apiServerURL "https://hub": want another address`},
		{name: "a further address without TLS", text: `{"apiServerURL":"https://hub","apiServerFallbacks":[{"apiServerURL":"http://two"}]}`,
			problem: `apiServerFallbacks[0].apiServerURL "http://two": want https://host`},
		{name: "a CA that is none of a further address",
			text:    `{"apiServerURL":"https://hub","apiServerFallbacks":[{"apiServerURL":"https://two","apiServerCA":"hello"}]}`,
			problem: "apiServerFallbacks[0].apiServerCA: the CA"},
		{name: "too many addresses", text: `{"apiServerURL":"https://hub","apiServerFallbacks":[{},{},{},{},{}]}`,
			problem: "apiServerFallbacks has 5 addresses: want at most 4"},
		{name: "no patience with an address", text: `{"apiServerFallbackAfter":"9s"}`,
			problem: "apiServerFallbackAfter 9s: want between 10s and 1h0m0s"},
		{name: "durations", want: short, text: `{"agentTokenLifetime":"1h","agentCheckinInterval":"1m"}`},
		{name: "keys of other components are ignored", want: Default(), text: `{"gitClientTimeout":"30s","bootstrap":{"repo":"x"}}`},
		{name: "what agents are installed with", want: ofAgents, text: `{"agentImage":"registry/muster-agent:1","agentImagePullPolicy":"Never",
			"systemDefaultRegistry":"registry",` +
			`"agentTLSMode":"strict","garbageCollectionInterval":"1h","imagePullSecrets":[{"name":"a"},{"name":"b"}]}`},
		{
			name: "a TLS mode that is none is refused", text: `{"agentTLSMode":"lax"}`, problem: "agentTLSMode \"lax\": want strict or system-store",
		},
		{
			name: "a key of Cluster API that is none is refused", text: `{"clusterAPI":{"labels":["env","a b"]}}`,
			problem: `clusterAPI.labels: "a b" is no key, and no prefix with /*`,
		},
		{
			name: "a short wait for members of Cluster API is refused", text: `{"clusterAPI":{"leaveFirst":"1s"}}`,
			problem: "clusterAPI.leaveFirst 1s: want 0, or between 10s and 24h0m0s",
		},
		{
			name: "a label for the class that is none is refused", text: `{"clusterAPI":{"classLabel":"a/b/c"}}`,
			problem: `clusterAPI.classLabel: "a/b/c" is no key of a label`,
		},
		{
			name: "a fact that does not exist is refused", text: `{"facts":{"labels":["region","k8s.io"]}}`,
			problem: "facts.labels: no fact of a member has the name k8s.io",
		},
		{name: "an inventory elsewhere", want: elsewhere, text: `{"inventory":{"namespace":"kueue-system","clusterSet":"prod"}}`},
		{name: "placement decisions", want: decisions, text: `{"inventory":{"placementDecisions":true}}`},
		{name: "an inventory in fleet-system, too", want: also, text: `{"inventory":{"alsoInFleetSystem":true}}`},
		{name: "no inventory", want: off, text: `{"inventory":{"namespace":""}}`},
		{
			name: "a namespace that cannot be is refused", text: `{"inventory":{"namespace":"a.b"}}`,
			problem: `inventory.namespace "a.b": must not contain dots`,
		},
		{name: "so is an empty ClusterSet", text: `{"inventory":{"clusterSet":""}}`, problem: "inventory.clusterSet is empty"},
		{
			name: "and one that is no label value", text: `{"inventory":{"clusterSet":"a b"}}`, problem: `inventory.clusterSet "a b": a valid label`,
		},
		{name: "keys of other components are ignored", want: Default(), text: `{"gitClientTimeout":"30s"}`},
		{name: "whoever writes ClusterResourcePlacements is trusted", want: trusting, text: `{"placement":{"authorRights":"namespaced"}}`},
		{
			name: "rights that are none are refused", text: `{"placement":{"authorRights":"some"}}`,
			problem: `placement.authorRights "some": want enforce, namespaced or ignore`,
		},
		{name: "a brake that is off", want: unbraked, text: `{"removalBrake":{"share":100}}`},
		{name: "a brake without a share has the default", want: Default(), text: `{"removalBrake":{}}`},
		{
			name: "a share of more than all is refused", text: `{"removalBrake":{"share":101}}`,
			problem: "removalBrake.share 101: want a percentage from 0 to 100",
		},
		{name: "a share below zero is refused", text: `{"removalBrake":{"share":-1}}`, problem: "removalBrake.share -1: want a percentage"},
		{name: "a share that is no whole number is refused", text: `{"removalBrake":{"share":0.5}}`, problem: "reading key config"},
		{
			name: "the local cluster", want: local, text: `{"bootstrap":{"namespace":"fleet-local","clusterLabels":{"env":"hub"},"repo":"ignored"}}`,
		},
		{name: "upstream's way to have no local cluster", want: Default(), text: `{"bootstrap":{"namespace":"-"}}`},
		{
			name: "mappings and loopback", want: mapped,
			text: `{"bundleNamespaceMappings":"open","bundleNamespaceMappingsToLocal":true,"importLoopback":true}`,
		},
		{name: "consent is the default", want: Default(), text: `{"bundleNamespaceMappings":"consent"}`},
		{
			name: "mappings that are neither are refused", text: `{"bundleNamespaceMappings":"closed"}`,
			problem: `bundleNamespaceMappings "closed": want consent or open`,
		},
		{name: "what registering may cost; 0 is no bound", want: bounded, text: `{"registration":{"requestLifetime":"2h","newClusterLifetime":"0",
			"maxWaitingPerToken":1,"maxWaitingPerWorkspace":2,"maxQueuedPerToken":3,"maxNewClustersPerToken":0,"displacement":"lost"}}`},
		{name: "which audit entries are kept; 0 is none", want: kept, text: `{"audit":{"maxAge":"24h","maxEntries":0}}`},
		{name: "a number of entries below zero is refused", text: `{"audit":{"maxEntries":-1}}`, problem: "audit.maxEntries -1: want 0"},
		{name: "an age in which nobody sees an entry is refused", text: `{"audit":{"maxAge":"90s"}}`, problem: "audit.maxAge 1m30s: want 0"},
		{
			name: "a displacement that is none is refused", text: `{"registration":{"displacement":"never"}}`,
			problem: "registration.displacement \"never\": want approved, lost or any",
		},
		{
			name: "a request is kept for as long as a legacy agent waits", text: `{"registration":{"requestLifetime":"1m"}}`,
			problem: "registration.requestLifetime 1m0s: want at least 30m0s",
		},
		{
			name: "so is a new Cluster", text: `{"registration":{"newClusterLifetime":"1m"}}`,
			problem: "registration.newClusterLifetime 1m0s: want 0 or at least 30m0s",
		},
		{
			name: "a number below zero is refused", text: `{"registration":{"maxQueuedPerToken":-1}}`,
			problem: "registration.maxQueuedPerToken -1: want 0",
		},
		{
			name: "kubeconfigs go to no namespace of Kubernetes", text: `{"access":{"fluxNamespace":"kube-system"}}`,
			problem: `access.fluxNamespace "kube-system": want the namespace of the tool`,
		},
		{
			name: "nor of the fleet", text: `{"access":{"argocdNamespace":"cattle-fleet-clusters-system"}}`,
			problem: `access.argocdNamespace "cattle-fleet-clusters-system": want the namespace of the tool`,
		},
		{
			name: "nor of a member", text: `{"access":{"inventoryNamespace":"cluster-web"}}`,
			problem: `access.inventoryNamespace "cluster-web": want the namespace of the tool`,
		},
		{
			name: "a workspace has a name", text: `{"access":{"workspaces":["a*"]}}`, problem: `access.workspaces "a*"`,
		},
		{
			name: "an Argo CD project has a name", text: `{"access":{"argocdProject":"a b"}}`, problem: `access.argocdProject "a b"`,
		},
		{name: "garbage is refused", text: "{{", problem: "reading key config"},
		{name: "a URL without https is refused", text: `{"apiServerURL":"hub.example"}`, problem: "want https://host or https://host:port"},
		{
			name: "an agentTLSMode that agents do not know is refused", text: `{"agentTLSMode":"lax"}`,
			problem: `agentTLSMode "lax": want strict or system-store`,
		},
		{name: "a CA that is none is refused", text: `{"apiServerCA":"hello"}`, problem: "apiServerCA: the CA"},
		{
			name: "a wait out of range is refused", text: `{"forceDeleteWaitTime":"1s"}`,
			problem: "forceDeleteWaitTime 1s: want between 30s and 1h0m0s",
		},
		{name: "a life shorter than Kubernetes grants is refused", text: `{"agentTokenLifetime":"1m"}`, problem: "want at least 10m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.text)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("got error %v, want one with %q", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMembersAreAskedToUseAnAddressOnlyIfTheSettingsHaveOne(t *testing.T) {
	for text, want := range map[string]*clusterv1beta1.HubAddress{
		`{"agentTLSMode":"strict"}`:                              nil,
		`{"apiServerURL":"https://hub","agentTLSMode":"strict"}`: {APIServerURL: "https://hub", AgentTLSMode: "strict"},
		`{"apiServerURL":"https://hub","apiServerFallbackAfter":"90s","apiServerFallbacks":[{"apiServerURL":"https://two"}]}`: {
			APIServerURL: "https://hub", Fallbacks: []clusterv1beta1.HubFallback{{APIServerURL: "https://two"}}, FallbackAfterSeconds: 90,
		},
	} {
		parsed, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, parsed.Hub()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

package join

import (
	"context"
	"crypto/rand"
	"maps"
	"math/big"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
)

const (
	// randomLetters is the alphabet of upstream's clientRandom, randomLength its length without a
	// suffix. Here the last 17 of 54 characters are a dot and the time.
	randomLetters = "bcdfghjklmnpqrstvwxz2456789"
	randomLength  = 54 - 17
	// maxHubCAs is the limit of spec.hubCAs.
	maxHubCAs = 8
	// callTimeout bounds each request except watches.
	callTimeout = 10 * time.Second
)

func (j *Joiner) request(clientID string, key credential.AnswerKey) *fleet.ClusterRegistration {
	labels := map[string]string{}
	maps.Copy(labels, j.Config.Labels)
	if j.Hostname != "" && len(validation.IsValidLabelValue(j.Hostname)) == 0 {
		labels[fleet.LabelCreatedByAgentPod] = j.Hostname
	}
	now := j.Clock.Now()
	request := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "request-", Namespace: j.Bootstrap.Workspace},
		Spec: fleet.ClusterRegistrationSpec{
			ClientID: clientID, ClientRandom: credential.TimedNonce(random(), now), ClusterLabels: labels, AnswerKey: key.Public(),
			RequestedAt: new(metav1.NewMicroTime(now)),
		},
	}
	if name := j.Bootstrap.TokenName; name != "" && len(validation.IsValidLabelValue(name)) == 0 {
		request.Labels = map[string]string{fleet.LabelRegistrationToken: name}
	}
	if subject := j.Bootstrap.Claims.Subject; subject != "" {
		request.Annotations = map[string]string{fleet.AnnotationRequester: subject}
	}
	request.Spec.HubCAs = j.hubCAs()
	if j.Key != nil {
		request.Spec.AgentKey = j.Key.Public()
		request.Spec.Signature = j.Key.Sign(credential.Claim{
			Workspace: request.Namespace, ClientID: clientID, Nonce: request.Spec.ClientRandom, Token: request.Labels[fleet.LabelRegistrationToken],
			AnswerKey: key.Public(),
			HubCAs:    request.Spec.HubCAs,
		})
	}
	return request
}

// hubCAs returns the digests of the hub's authorities, if the agent trusts no others.
//
// It returns none if the agent also trusts others, because a man in the middle may have shown one
// of their certificates. It also returns none for a bundle of too many authorities, because such a
// bundle identifies no hub.
func (j *Joiner) hubCAs() []string {
	if j.Config.Mode != hubclient.TLSStrict {
		return nil
	}
	if digests := credential.CADigests(j.Bootstrap.CA); len(digests) <= maxHubCAs {
		return digests
	}
	return nil
}

func random() string {
	letters := make([]byte, randomLength)
	for i := range letters {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(randomLetters))))
		if err != nil {
			panic(err) // crypto/rand never fails; the runtime ends the program first
		}
		letters[i] = randomLetters[n.Int64()]
	}
	return string(letters)
}

func post(ctx context.Context, registrations *hubclient.Registrations,
	request *fleet.ClusterRegistration) (*fleet.ClusterRegistration, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return registrations.Create(ctx, request, metav1.CreateOptions{})
}

func get(ctx context.Context, registrations *hubclient.Registrations, name string) (*fleet.ClusterRegistration, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return registrations.Get(ctx, name, metav1.GetOptions{})
}

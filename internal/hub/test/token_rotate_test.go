package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
)

// rotate requests a rotation, waits until it is done, and returns the new values.
func (f fixture) rotate(name, requested, overlap string) (fleet.ClusterRegistrationToken, map[string]string) {
	f.t.Helper()
	token := &fleet.ClusterRegistrationToken{}
	f.check(f.get(token, f.workspace, name))
	f.patch(token, fmt.Sprintf(`{"metadata":{"annotations":{"muster/rotate":%q,"muster/rotate-overlap":%q}}}`, requested, overlap))
	f.eventually("the credential is replaced", func() error {
		if err := f.get(token, f.workspace, name); err != nil {
			return err
		}
		if token.Status.Rotation == nil || token.Status.Rotation.Requested != requested {
			return fmt.Errorf("the status is %+v", token.Status)
		}
		return nil
	})
	return *token, f.values(name)
}

// registers reports whether values still register a cluster.
func (f fixture) registers(values map[string]string, id string) error {
	f.t.Helper()
	_, err := f.ask(values, fleet.ClusterRegistrationSpec{ClientID: id})
	return err
}

func TestATokenIsRotatedWithAnOverlap(t *testing.T) {
	f := newFixture(t)
	for _, ttl := range []string{"240h", ""} {
		name := "rotates" + ttl
		token, first := f.token(name, ttl)
		_, second := f.rotate(name, "1", "12s")
		if first["token"] == second["token"] {
			t.Fatalf("ttl %q: the credential is not replaced", ttl)
		}
		for id, values := range map[string]map[string]string{"first": first, "second": second} {
			f.check(f.registers(values, id+ttl))
		}
		f.eventually("the first credential ends", func() error {
			if err := f.registers(first, "late"+ttl); !apierrors.IsUnauthorized(err) {
				return fmt.Errorf("asking: %v", err)
			}
			return nil
		})
		f.eventually("the status says so", func() error {
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token); err != nil {
				return err
			}
			said := kube.FindCondition(token.Status.Conditions, fleet.ConditionRotated)
			if token.Status.Rotation.PreviousEnds != nil || !strings.Contains(said.Message, "the previous one has ended") {
				return fmt.Errorf("rotation %+v, condition %+v", token.Status.Rotation, said)
			}
			return nil
		})
		f.check(f.registers(second, "after"+ttl))
		now := f.values(name)
		if now["token"] != second["token"] {
			t.Errorf("ttl %q: the credential was replaced again", ttl)
		}
	}
}

func TestARotationWithoutAnOverlapEndsTheCredentialAtOnceAndAtMostTwoAreValid(t *testing.T) {
	f := newFixture(t)
	_, first := f.token("leaked", "240h")
	_, second := f.rotate("leaked", "1", "1h")
	_, third := f.rotate("leaked", "2", "1h")
	f.eventually("the first credential ends before its overlap", func() error {
		if err := f.registers(first, "first"); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("asking: %v", err)
		}
		return nil
	})
	f.check(f.registers(second, "second"))
	_, fourth := f.rotate("leaked", "3", "0s")
	for name, values := range map[string]map[string]string{"second": second, "third": third} {
		f.eventually("the "+name+" credential ends at once", func() error {
			if err := f.registers(values, name+"-again"); !apierrors.IsUnauthorized(err) {
				return fmt.Errorf("asking: %v", err)
			}
			return nil
		})
	}
	f.check(f.registers(fourth, "fourth"))
}

// TestARotationThatIsNotShownYetIsDoneOnce plays a hub that ended after it wrote the values, and
// before it wrote the status.
func TestARotationThatIsNotShownYetIsDoneOnce(t *testing.T) {
	f := newFixture(t)
	token, first := f.token("twice", "240h")
	_, second := f.rotate("twice", "1", "1h")
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token))
	before := token.DeepCopy()
	token.Status.Rotation = nil
	f.check(f.Status().Patch(context.Background(), &token, client.MergeFrom(before)))
	f.eventually("the status shows the rotation again", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token); err != nil {
			return err
		}
		if token.Status.Rotation == nil || token.Status.Rotation.Generation != 1 {
			return fmt.Errorf("the status is %+v", token.Status)
		}
		return nil
	})
	if f.values("twice")["token"] != second["token"] {
		t.Error("the credential was replaced twice")
	}
	f.check(f.registers(first, "first"))
}

func TestNobodyButAnEditorOfATokenRotatesIt(t *testing.T) {
	f := newFixture(t)
	token, values := f.token("mine", "240h")
	holder := f.as(values["token"])
	claims, err := credential.ReadClaims(values["token"])
	f.check(err)
	annotate := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"muster/rotate":"x"}}}`))
	if err := holder.Patch(context.Background(), &token, annotate); !apierrors.IsForbidden(err) {
		t.Errorf("the holder of the credential rotates the token: %v", err)
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = f.workspace, claims.Secret
	if claims.Secret == "" {
		t.Fatal("the credential is bound to no Secret")
	}
	if err := holder.Delete(context.Background(), secret); !apierrors.IsForbidden(err) {
		t.Errorf("the holder ends the credential of all: %v", err)
	}
}

func TestARotationWithABadOverlapSaysSo(t *testing.T) {
	f := newFixture(t)
	token, first := f.token("bad", "240h")
	f.patch(&token, `{"metadata":{"annotations":{"muster/rotate":"1","muster/rotate-overlap":"soon"}}}`)
	f.eventually("the token says what is wrong", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token); err != nil {
			return err
		}
		said := kube.FindCondition(token.Status.Conditions, fleet.ConditionRotated)
		if said == nil || said.Reason != "InvalidRotation" || !strings.Contains(said.Message, `"soon"`) {
			return fmt.Errorf("the condition is %+v", said)
		}
		return nil
	})
	f.patch(&token, `{"metadata":{"annotations":{"muster/rotate-overlap":"1h"}}}`)
	f.eventually("the corrected rotation is done", func() error {
		if f.values("bad")["token"] == first["token"] {
			return errors.New("the credential is the first one")
		}
		return nil
	})
	f.eventually("it names the end of the previous credential", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token); err != nil {
			return err
		}
		if r := token.Status.Rotation; r == nil || r.PreviousEnds == nil || time.Until(r.PreviousEnds.Time) > time.Hour {
			return fmt.Errorf("rotation is %+v", r)
		}
		return nil
	})
}

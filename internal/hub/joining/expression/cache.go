package expression

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Cache keeps compiled expressions of tokens, each for one generation of one token. Only the
// controller of tokens adds and removes entries, so an expression ends with its token.
type Cache struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]entry
}

type entry struct {
	uid        types.UID
	generation int64
	compiled
}

// compiled is an expression, or its error.
type compiled struct {
	expression Expression
	err        error
}

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{entries: map[types.NamespacedName]entry{}} }

func keyOf(token *fleet.ClusterRegistrationToken) types.NamespacedName {
	return types.NamespacedName{Namespace: token.Namespace, Name: token.Name}
}

// Of returns the expression of a token.
func (c *Cache) Of(token *fleet.ClusterRegistrationToken) (Expression, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, has := c.entries[keyOf(token)]; has && e.uid == token.UID && e.generation == token.Generation {
		return e.expression, e.err
	}
	return Compile(token.Spec.ApprovalExpression)
}

// Keep compiles the expression of a token, and keeps it until Forget. Without an expression it
// keeps nothing.
func (c *Cache) Keep(token *fleet.ClusterRegistrationToken) error {
	if token.Spec.Approval != fleet.ApprovalCEL {
		c.Forget(keyOf(token))
		return nil
	}
	expression, err := c.Of(token)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[keyOf(token)] = entry{uid: token.UID, generation: token.Generation, compiled: compiled{expression, err}}
	return err
}

// Forget drops the expression of a deleted token.
func (c *Cache) Forget(token types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, token)
}

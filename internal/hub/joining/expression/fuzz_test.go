package expression

import "testing"

// FuzzExpression compiles the approvals of tokens, and evaluates them within their cost.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		`labels[?'env'].orValue('') == 'dev'`, `labels.all(a, labels.all(b, a == b))`,
		`requester.matches('(a*)*b')`, `native && clientID.startsWith(key)`,
		`"a"`, `labels`, `[1,2].exists(x, x/0 == 1)`, `'%s'.format([labels]) == ''`,
	} {
		f.Add(seed, "dev")
	}
	f.Fuzz(func(t *testing.T, text, label string) {
		expression, err := Compile(text)
		if err != nil {
			return
		}
		if approved, why := expression.Approves(Request{Labels: map[string]string{"env": label}, ClientID: label}); !approved && why == "" {
			t.Errorf("%q refuses without a cause", text)
		}
	})
}

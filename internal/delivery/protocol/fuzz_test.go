package protocol

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzOrders reads lines of another process. No error quotes an order, because it may hold a token.
func FuzzOrders(f *testing.F) {
	f.Add([]byte("{}\n{\"token\":1}\n"))
	f.Add([]byte("null\n\n[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		const secret = "secret-token"
		err := ReadOrders(bytes.NewReader(append(text, secret...)), func(Order) {})
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes an order: %v", err)
		}
		ReadReplies(bytes.NewReader(text), func(Reply) {})
	})
}

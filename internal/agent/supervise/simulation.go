package supervise

import (
	"context"
	"io"
	"sync"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// Simulation replaces the program in the agent's own process. It reads orders, sends replies, and
// returns once nothing is left to do or ctx ends. Thousands of simulated members therefore fit into
// one process.
type Simulation func(ctx context.Context, orders io.Reader, replies io.Writer) error

// simulate runs the simulation once, as run does with the program.
func (s *Supervisor) simulate(ctx context.Context) (emptied bool, err error) {
	ordersRead, orders := io.Pipe()
	replies, repliesSent := io.Pipe()
	exited := make(chan error, 1)
	go func() {
		err := s.Simulation(ctx, ordersRead, repliesSent)
		_, _ = ordersRead.Close(), repliesSent.Close() // a pipe's Close never fails
		exited <- err
	}()
	var reading sync.WaitGroup
	reading.Go(func() {
		protocol.ReadReplies(replies, func(reply protocol.Reply) {
			emptied = emptied || reply.Emptied
			s.handleReply(ctx, reply)
		})
	})
	err = s.sendOrders(orders, exited)
	reading.Wait()
	return emptied, err
}

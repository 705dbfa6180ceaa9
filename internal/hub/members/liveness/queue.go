package liveness

// deadlines is a heap of members, the nearest deadline first. It implements container/heap.
type deadlines []*member

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, k int) bool { return d[i].deadline.Before(d[k].deadline) }

func (d deadlines) Swap(i, k int) {
	d[i], d[k] = d[k], d[i]
	d[i].index, d[k].index = i, k
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	m := x.(*member)
	m.index = len(*d)
	*d = append(*d, m)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	old := *d
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	m.index = -1
	return m
}

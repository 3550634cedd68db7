package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/millrace/millrace/txn/history"
)

// observer asks for watermarks and committed offsets, over and over.
type observer struct {
	*field
	process int
}

// watch asks until stop is closed.
func (o *observer) watch(stop <-chan struct{}) {
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		o.marks(ctx)
		for _, g := range o.groups {
			o.committed(ctx, g)
		}
		cancel()
	}
}

// marks asks for the log start first and the high watermark last, so that they are in
// order although they are from three moments.
func (o *observer) marks(ctx context.Context) ([]history.Mark, error) {
	e := history.Event{Process: o.process, Kind: history.Marks, Type: history.Invoke}
	o.rec.add(e)
	var lists [3]kadm.ListedOffsets
	for i, list := range []func(context.Context, ...string) (kadm.ListedOffsets, error){
		o.admin.ListStartOffsets, o.admin.ListCommittedOffsets, o.admin.ListEndOffsets,
	} {
		var err error
		if lists[i], err = list(ctx, o.topics...); err == nil {
			err = lists[i].Error()
		}
		if err != nil {
			e.Type, e.Note = history.Fail, err.Error()
			o.rec.add(e)
			return nil, err
		}
	}
	for _, k := range o.keys {
		var at [3]int64
		for i := range at {
			l, found := lists[i].Lookup(k.Topic, k.Partition)
			if !found {
				e.Type, e.Note = history.Fail, fmt.Sprintf("%v is not listed", k)
				o.rec.add(e)
				return nil, fmt.Errorf("%v is not listed", k)
			}
			at[i] = l.Offset
		}
		e.Marks = append(e.Marks, history.Mark{Key: k, Start: at[0], Stable: at[1], High: at[2]})
	}
	e.Type = history.OK
	o.rec.add(e)
	return e.Marks, nil
}

// committed asks what a group has committed. Only stable offsets say something: a
// coordinator may confirm a commit before the group has heard of it, as Apache Kafka
// does, and shows the offset of before unless it is asked to wait.
func (o *observer) committed(ctx context.Context, group string) {
	e := history.Event{Process: o.process, Kind: history.Committed, Group: group, Type: history.Invoke}
	o.rec.add(e)
	e.Type = history.OK
	found, err := o.admin.FetchOffsets(kadm.RequireStable(ctx), group)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		e.Type, e.Note = history.Fail, err.Error()
		o.rec.add(e)
		return
	}
	for _, k := range o.keys {
		if at, committed := found.Lookup(k.Topic, k.Partition); committed && at.At >= 0 {
			e.Positions = append(e.Positions, history.Position{Key: k, Offset: at.At})
		}
	}
	o.rec.add(e)
}

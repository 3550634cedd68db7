package restore

import (
	"slices"

	"github.com/millrace/millrace/txn/session"
)

// Set is jobs that read through one reader. It belongs to one goroutine.
type Set struct {
	reader *session.Reader
	jobs   []*Job
}

// NewSet makes a set without jobs.
func NewSet(cluster *session.Cluster) *Set {
	return &Set{reader: cluster.NewReader(session.ReaderOptions{})}
}

// Add starts a job that was prepared. One that has nothing to read is done at
// once. A partition is read by one job at a time.
func (s *Set) Add(j *Job) {
	j.done, j.err, j.broken = false, nil, false
	from := j.from()
	if !j.Follow && from >= j.End {
		j.done = true
		return
	}
	j.feed = s.reader.Add(j.Part, from)
	s.jobs = append(s.jobs, j)
}

// Remove stops a job. What it has read is in its image then, unless the error
// says otherwise.
func (s *Set) Remove(j *Job) error {
	if !slices.Contains(s.jobs, j) {
		return nil
	}
	err := j.err
	if err == nil || !j.broken {
		err = j.settle(j.Position(), true)
	}
	s.Drop(j)
	return err
}

// Drop stops a job without a write.
func (s *Set) Drop(j *Job) {
	if i := slices.Index(s.jobs, j); i >= 0 {
		s.jobs = slices.Delete(s.jobs, i, i+1)
		s.reader.Remove(j.feed)
		j.feed = nil
	}
}

// Arrived gets a value when there may be something for Step to do.
func (s *Set) Arrived() <-chan struct{} { return s.reader.Arrived() }

// stepRecords is how many records of each job a step applies, so that the owner
// of the set is never away for long.
const stepRecords = 5000

// Step applies what has arrived, some of each job; more asks to be called again
// at once. Jobs that are complete leave the set, those that cannot go on say so.
func (s *Set) Step() (more bool) {
	for _, j := range s.jobs {
		more = j.drain(stepRecords) || more
	}
	if s.reader.Full() {
		// Copies that wait for their bound may have filled the memory.
		for _, j := range s.jobs {
			if j.dry() {
				s.reader.Want(j.feed)
			}
		}
	}
	s.jobs = slices.DeleteFunc(s.jobs, func(j *Job) bool {
		if j.done {
			s.reader.Remove(j.feed)
			j.feed = nil
		}
		return j.done
	})
	return more
}

// Close stops reading. Jobs that are still in the set keep what they have in their
// images, not what they have read since.
func (s *Set) Close() { s.reader.Close() }

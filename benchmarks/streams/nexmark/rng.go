package nexmark

import "math"

// rng draws from splitmix64 (Steele, Lea, Flood, 2014): a counter and a mixer, so that the numbers of one event do not
// depend on those of another.
type rng struct{ at uint64 }

const golden = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (r *rng) next() uint64 {
	r.at += golden
	return mix(r.at)
}

// below is a number from 0 on, below n.
func (r *rng) below(n int64) int64 { return int64(r.next() >> 1 % uint64(n)) }

// price is spread evenly over its logarithm, from 1 to 1,000,000 with two digits behind the point.
func (r *rng) price() int64 {
	u := float64(r.next()>>11) / (1 << 53)
	return int64(math.Round(math.Pow(10, 6*u) * 100))
}

// text is words of up to limit letters, at least three.
func (r *rng) text(limit int64) string {
	b := make([]byte, 3+r.below(max(1, limit-3)))
	for i := range b {
		if b[i] = ' '; r.below(13) > 0 {
			b[i] = byte('a' + r.below(26))
		}
	}
	return string(b)
}

// word is exactly n letters.
func (r *rng) word(n int64) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.below(26))
	}
	return string(b)
}

// pad fills an event of so many bytes up to an average size, a fifth more or less.
func (r *rng) pad(have int, average int64) string {
	if want := average - int64(have); want > 0 {
		return r.word(want - want/5 + r.below(max(1, 2*(want/5))))
	}
	return ""
}

func pick(r *rng, from []string) string { return from[r.below(int64(len(from)))] }

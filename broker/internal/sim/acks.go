package sim

// What a producer asks to be told of its records.
const (
	all  int16 = -1
	one  int16 = 1
	none int16 = 0
)

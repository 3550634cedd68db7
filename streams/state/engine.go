package state

// Engine makes images. One value serves all stores that are given to it, which may
// share memory through it; it is safe for concurrent use. An engine of one's own
// runs the suite in package statetest.
type Engine interface {
	// Name tells engines apart, in a state folder and in logs: lower-case letters
	// and digits, the same for ever.
	Name() string

	// Durable reports whether images outlive the process, in the folder that Open
	// is given. An engine that is not durable is given none.
	Durable() bool

	// Open opens the image in dir, a new one when dir is empty or not there. Errors
	// wrap [ErrCorrupt] for what has to be rebuilt, [ErrNewerFormat] for what must
	// be left alone, [ErrNoRoom] for what may do better later.
	Open(dir string) (Image, error)
}

// GoLevelDB is the engine of [LevelDB] images, the default on disk.
func GoLevelDB() Engine { return levelEngine{} }

type levelEngine struct{}

func (levelEngine) Name() string                   { return "goleveldb" }
func (levelEngine) Durable() bool                  { return true }
func (levelEngine) Open(dir string) (Image, error) { return opened(OpenLevelDB(dir)) }

// InMemory is the engine of [Memory] images.
func InMemory() Engine { return memoryEngine{} }

type memoryEngine struct{}

func (memoryEngine) Name() string               { return "memory" }
func (memoryEngine) Durable() bool              { return false }
func (memoryEngine) Open(string) (Image, error) { return NewMemory(), nil }

// opened keeps a nil pointer from becoming an image.
func opened[T Image](img T, err error) (Image, error) {
	if err != nil {
		return nil, err
	}
	return img, nil
}

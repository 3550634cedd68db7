package clients

import gokastorage "github.com/lovoo/goka/storage"

// storage is goka's own goleveldb storage in a folder of the test.
func storage(dir string) gokastorage.Builder { return gokastorage.DefaultBuilder(dir) }

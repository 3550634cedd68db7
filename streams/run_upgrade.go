package streams

import "github.com/millrace/millrace/streams/internal/runtime"

// Abandon lets a release begin some of its stores empty. An application leaves a
// description of its topology on the cluster, in the topic <id>-topology, and each
// start is compared with it: when a store or repartition topic is gone and another
// one of the same kind and types is new, it was most likely renamed, and the start
// is refused with ErrUpgrade. Abandon gives the old names that may be left behind
// all the same. Their topics stay on the cluster.
func Abandon(names ...string) RunOpt {
	return func(o *runtime.Options) { o.Abandon = append(o.Abandon, names...) }
}

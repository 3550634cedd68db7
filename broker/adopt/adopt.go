package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/core/vfs"
)

// Run takes Kafka's folder over. It reads every byte twice: to verify it, and to copy it.
func Run(o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, err
	}
	o = o.withDefaults()
	p, err := newPlan(o)
	if err != nil {
		return Report{}, err
	}
	if err := p.verify(); err != nil {
		return Report{}, err
	}
	if err := free(o.FS, o.To); err != nil {
		return Report{}, err
	}
	work := filepath.Clean(o.To) + unfinished
	if _, err := o.FS.Stat(work); err == nil {
		return Report{}, fmt.Errorf("adopt: %s is left of an import that did not come to its end: remove it", work)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Report{}, fmt.Errorf("adopt: %w", err)
	}
	b := &build{o: o, plan: p, dir: work}
	if err := b.run(); err != nil {
		return Report{}, errors.Join(err, vfs.RemoveAll(o.FS, work))
	}
	return p.report, nil
}

// free looks whether a folder may be made.
func free(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("adopt: %w", err)
	case len(names) > 0:
		return fmt.Errorf("adopt: %s: %w", dir, ErrNotEmpty)
	}
	return nil
}

// verify looks at every byte of what is to be taken over.
func (p *plan) verify() error {
	var damage []error
	for _, d := range p.folders {
		err := d.Verify(inspect.VerifyOptions{Progress: p.o.Progress}, func(f inspect.Finding) {
			switch {
			case f.Severity == inspect.Damage, f.Severity == inspect.TornTail && !p.o.Unclean:
				damage = append(damage, errors.New(f.String()))
			case f.Severity == inspect.TornTail:
				p.o.Logger.Warn("a torn tail is cut off", "finding", f.String())
			}
		})
		if err != nil {
			return fmt.Errorf("adopt: %w", err)
		}
	}
	if len(damage) > 0 {
		return fmt.Errorf("adopt: %w: %w", ErrDamaged, errors.Join(damage...))
	}
	return nil
}

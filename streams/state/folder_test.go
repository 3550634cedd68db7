package state_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/streams/state"
)

func openFolder(t *testing.T, dir, instance string) *state.Folder {
	t.Helper()
	f, err := state.OpenFolder(dir, instance)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func closeFolder(t *testing.T, f *state.Folder) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFolderKeepsItsIdentity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFolder(t, dir, "")
	id, topics := f.Instance(), map[string][16]byte{"app-x-changelog": {1, 2}}
	if err := f.SetTopics("cluster", topics); err != nil {
		t.Fatal(err)
	}
	closeFolder(t, f)
	f = openFolder(t, dir, "")
	if f.Instance() != id || id == "" {
		t.Errorf("instance %q after reopening, was %q", f.Instance(), id)
	}
	if got := f.Topics("another"); len(got) != 0 {
		t.Errorf("topics of another cluster: %v", got)
	}
	if got := f.Topics("cluster"); len(got) != 1 || got["app-x-changelog"] != topics["app-x-changelog"] {
		t.Errorf("topics %v, want %v", got, topics)
	}
	closeFolder(t, f)
	f = openFolder(t, dir, "given")
	closeFolder(t, f)
	if f = openFolder(t, dir, ""); f.Instance() != "given" {
		t.Errorf("instance %q, want the one given before", f.Instance())
	}
	closeFolder(t, f)
}

func TestFolderBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFolder(t, dir, "")
	_, err := state.OpenFolder(dir, "")
	if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second owner: %v", err)
	}
	closeFolder(t, f)
	closeFolder(t, openFolder(t, dir, ""))
}

func TestFolderRefusesNewerFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "identity.json"), []byte(`{"format":99,"instance":"x"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := state.OpenFolder(dir, ""); !errors.Is(err, state.ErrNewerFormat) {
		t.Errorf("newer format: %v", err)
	}
}

func TestFolderStoresAreHeldByOneTask(t *testing.T) {
	t.Parallel()
	f := openFolder(t, t.TempDir(), "")
	img, release, err := f.OpenStore(t.Context(), "a/b..", 3)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := f.OpenStore(gone, "a/b..", 3); !errors.Is(err, context.Canceled) {
		t.Errorf("a store in use was opened again: %v", err)
	}
	second := make(chan error)
	go func() {
		img, release, err := f.OpenStore(t.Context(), "a/b..", 3)
		if err == nil {
			err = img.Close()
			release()
		}
		second <- err
	}()
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-second; err != nil {
		t.Errorf("the next owner: %v", err)
	}
	if got, err := f.Stores("a/b.."); err != nil || !slices.Equal(got, []int32{3}) {
		t.Errorf("stores %v, %v", got, err)
	}
	closeFolder(t, f)
}

func TestFolderReplacesDamagedStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFolder(t, dir, "")
	img, release, err := f.OpenStore(t.Context(), "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := img.Apply([]state.Row{{Key: []byte("k"), Value: []byte("v")}}, state.Position{TopicID: [16]byte{1}, Next: 5}); err != nil {
		t.Fatal(err)
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	if err := os.WriteFile(filepath.Join(dir, "stores", "s", "0", "CURRENT"), []byte("nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	img, release, err = f.OpenStore(t.Context(), "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	if img.Position().Known() {
		t.Errorf("a damaged store came back with position %v", img.Position())
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	closeFolder(t, f)
}

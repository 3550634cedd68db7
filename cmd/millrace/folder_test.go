package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the user that a server runs as in tests that root runs: root may write anywhere.
const nobody = 65534

// TestReadOnlyDataFolder: a server that may not write its folder ends with an error that names the folder and says why.
func TestReadOnlyDataFolder(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o555); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "server", "--data-dir", data, "--listen", "127.0.0.1:0")
	if os.Geteuid() == 0 {
		// The ways to the program and to the folder must be open to the other user.
		if err := os.Chmod(filepath.Dir(binary), 0o755); err != nil {
			t.Fatal(err)
		}
		for dir := filepath.Dir(data); dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(out.String(), data) || !strings.Contains(out.String(), "permission denied") {
		t.Fatalf("%v\n%s", err, out.String())
	}
	entries, err := os.ReadDir(data)
	if err != nil || len(entries) != 0 {
		t.Fatalf("the folder holds %d entries, %v", len(entries), err)
	}
}

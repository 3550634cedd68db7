package rig

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// BuildMillrace builds the server binary into a folder.
func BuildMillrace(ctx context.Context, dir string) (string, error) {
	bin := filepath.Join(dir, "millrace")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", bin, "github.com/millrace/millrace/cmd/millrace")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the server: %w", err)
	}
	return bin, nil
}

// The names of brokers.
const (
	MillraceName = "Millrace"
	KafkaName    = "Apache Kafka"
)

// Millrace is our server on a fresh folder, with more arguments where a workload needs them.
func Millrace(bin, dir string, args ...string) (*Process, error) {
	addr, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	return NewProcess(MillraceName, dir, addr, func(ctx context.Context, p *Process) *exec.Cmd {
		return exec.CommandContext(ctx, bin, append([]string{"server", "--log-level", "warn", "--data-dir", p.Dir, "--listen", p.Addr}, args...)...)
	}), nil
}

// Kafka is Apache Kafka on a fresh folder, from the published jars in lib, as shipped: one node, broker and controller.
func Kafka(lib, dir string) (*Process, error) {
	addr, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	controller, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "server.properties")
	java := func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, "java", append([]string{"-cp", filepath.Join(lib, "*")}, args...)...)
	}
	return &Process{Name: KafkaName, Dir: filepath.Join(dir, "data"), Addr: addr,
		prepare: func(ctx context.Context, p *Process) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(config, []byte(kafkaProperties(p.Addr, controller, p.Dir)), 0o644); err != nil {
				return err
			}
			var id [16]byte
			rand.Read(id[:])
			id[0] &= 0x7f // the tool takes an id that begins with a dash for an option
			out, err := java(ctx, "kafka.tools.StorageTool", "format", "-t", base64.RawURLEncoding.EncodeToString(id[:]), "-c", config).CombinedOutput()
			if err != nil {
				return fmt.Errorf("format: %w\n%s", err, out)
			}
			return nil
		},
		command: func(ctx context.Context, _ *Process) *exec.Cmd {
			return exec.CommandContext(ctx, "java", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
				"-XX:InitiatingHeapOccupancyPercent=35", "-cp", filepath.Join(lib, "*"), "kafka.Kafka", config)
		}}, nil
}

func kafkaProperties(addr, controller, data string) string {
	_, port, err := net.SplitHostPort(controller)
	if err != nil {
		panic("benchmarks: FreeAddress gave " + strconv.Quote(controller))
	}
	return strings.Join([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@localhost:" + port,
		"listeners=PLAINTEXT://" + addr + ",CONTROLLER://127.0.0.1:" + port, "advertised.listeners=PLAINTEXT://" + addr,
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT", "log.dirs=" + data,
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		"group.initial.rebalance.delay.ms=0", "",
	}, "\n")
}

package memnet_test

import (
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace/core/memnet"
)

// A server and a client in one process, without a socket.
func Example() {
	network := memnet.New()
	l, err := network.Listen("broker:9092")
	if err != nil {
		panic(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.WriteString(c, "hello from "+c.LocalAddr().String())
		c.Close()
	}()
	c, err := network.Dial(context.Background(), "tcp", "broker:9092")
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(c)
	fmt.Println(string(text), err)
	// Output: hello from broker:9092 <nil>
}

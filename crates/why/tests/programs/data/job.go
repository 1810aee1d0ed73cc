package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

type node struct {
	Name     string  `json:"name"`
	Children []*node `json:"children,omitempty"`
}

func grow(depth int) *node {
	n := &node{Name: strings.Repeat("x", depth)}
	for i := 0; i < 3 && depth > 0; i++ {
		n.Children = append(n.Children, grow(depth-1))
	}
	return n
}

func deep(n int) int {
	var pad [256]byte
	pad[n%256] = 1
	if n == 0 {
		return int(pad[0])
	}
	return deep(n-1) + 1
}

func echo() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	go func() {
		conn, _ := listener.Accept()
		buffer := make([]byte, 100)
		n, _ := conn.Read(buffer)
		conn.Write([]byte(strings.ToUpper(string(buffer[:n]))))
		conn.Close()
	}()
	conn, _ := net.Dial("tcp", listener.Addr().String())
	conn.Write([]byte("over loopback"))
	buffer := make([]byte, 100)
	n, _ := conn.Read(buffer)
	return string(buffer[:n])
}

func main() {
	var group sync.WaitGroup
	var lock sync.Mutex
	total := 0
	for i := 0; i < 200; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			lock.Lock()
			total += i * i
			lock.Unlock()
		}(i)
	}
	group.Wait()
	fmt.Println("total", total)

	squares := make(chan int)
	go func() {
		for i := 0; i < 1000; i++ {
			squares <- i
		}
		close(squares)
	}()
	sum := 0
	for square := range squares {
		sum += square
	}
	fmt.Println("sum", sum, "deep", deep(20000))

	// A loop without calls: only a signal can preempt it.
	runtime.GOMAXPROCS(1)
	stop := false
	go func() { lock.Lock(); stop = true; lock.Unlock() }()
	spins := 0
	for done := false; !done; {
		for i := 0; i < 1000000; i++ {
			spins += i & 1
		}
		lock.Lock()
		done = stop
		lock.Unlock()
	}
	fmt.Println("preempted", spins > 0)
	runtime.GOMAXPROCS(4)

	text, _ := json.Marshal(grow(5))
	fmt.Printf("%d %x\n", len(text), sha256.Sum256(text))
	runtime.GC()
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var none *node
		fmt.Println(none.Name)
	}()
	words := strings.Fields("pine oak elm fir")
	sort.Strings(words)
	fmt.Println(words, errors.Is(os.ErrNotExist, os.ErrNotExist))
	select {
	case <-time.After(5 * time.Millisecond):
		fmt.Println("timeout")
	}
	out, err := exec.Command("echo", "from a child").Output()
	fmt.Print(string(out), err, "\n", echo(), "\n")
	os.WriteFile("written", text[:100], 0o644)
}

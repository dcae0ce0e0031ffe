// Command captf-testground runs a private Kubernetes API server for the tests.
//
// `captf-testground serve --assets DIR` starts etcd and kube-apiserver from DIR
// (the layout of KUBEBUILDER_ASSETS) on free loopback ports, installs the
// CustomResourceDefinitions of this module and prints one line of JSON on
// stdout. It runs until its standard input ends, or until SIGTERM or SIGINT,
// then stops both and removes its folder. The lines `stop-apiserver` and
// `start-apiserver` on standard input act out an outage of the API server; each
// is answered by one line of JSON.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// The parent-death signal of a child follows the thread that started it. Only
// the main goroutine starts children, and this keeps it on the main thread.
func init() { runtime.LockOSThread() }

// ready is the line that says how to reach the test ground.
type ready struct {
	Kubeconfig string  `json:"kubeconfig"`
	Server     string  `json:"server"`
	CA         string  `json:"ca"`
	Dir        string  `json:"dir"`
	Version    string  `json:"version"`
	Audit      *string `json:"audit"`
}

// answer is the line that follows a command on standard input.
type answer struct {
	Done  string `json:"done"`
	Error string `json:"error,omitempty"`
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "captf-testground: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 || args[0] != "serve" {
		return fmt.Errorf("usage: captf-testground serve --assets DIR [--audit] [--keep]")
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	assets := flags.String("assets", os.Getenv("KUBEBUILDER_ASSETS"), "folder that holds kube-apiserver and etcd")
	audit := flags.Bool("audit", false, "write an audit log of every request (level Metadata)")
	keep := flags.Bool("keep", false, "leave the folder with the logs behind")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *assets == "" {
		return fmt.Errorf("--assets is missing and KUBEBUILDER_ASSETS is not set")
	}

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	lines := readLines(os.Stdin)

	ground, err := newGround(*assets, *audit)
	if err != nil {
		return err
	}
	defer ground.close(*keep)
	line, err := ground.start(signals)
	if err != nil {
		return err
	}
	if err := print(line); err != nil {
		return err
	}
	return serve(ground, lines, signals)
}

// serve obeys the lines of standard input until there is a reason to end.
func serve(ground *ground, lines <-chan string, signals <-chan os.Signal) error {
	for {
		select {
		case <-signals:
			return nil
		case <-ground.etcd.exited:
			return fmt.Errorf("etcd ended by itself: %s", ground.etcd.report())
		case <-ground.apiserverExited():
			return fmt.Errorf("kube-apiserver ended by itself: %s", ground.apiserver.report())
		case line, open := <-lines:
			if !open {
				return nil
			}
			reply := answer{Done: line}
			if err := obey(ground, line, signals); err != nil {
				reply.Error = err.Error()
			}
			if err := print(reply); err != nil {
				return err
			}
		}
	}
}

func obey(ground *ground, line string, signals <-chan os.Signal) error {
	switch line {
	case "stop-apiserver":
		return ground.stopAPIServer()
	case "start-apiserver":
		return ground.startAPIServer(signals)
	default:
		return fmt.Errorf("unknown command %q: want stop-apiserver or start-apiserver", line)
	}
}

// readLines hands on the lines of a file and closes the channel at its end.
func readLines(file *os.File) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(file)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	return lines
}

// print writes one line of JSON on stdout.
func print(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write the line of JSON: %w", err)
	}
	_, err = fmt.Println(string(text))
	return err
}

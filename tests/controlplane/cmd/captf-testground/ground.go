package main

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	startLimit = 90 * time.Second
	stopGrace  = 3 * time.Second
)

// ground is one etcd and one kube-apiserver in a private folder.
type ground struct {
	assets, dir string
	audit       bool
	server      string // https://127.0.0.1:PORT
	port        int

	etcd, apiserver *process
	flags           []string // of kube-apiserver, the same at every start
	client          *client
}

func newGround(assets string, audit bool) (*ground, error) {
	assets, err := filepath.Abs(assets)
	if err != nil {
		return nil, fmt.Errorf("find the folder of --assets: %w", err)
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			return nil, fmt.Errorf("the folder of --assets lacks %s: %w", name, err)
		}
	}
	dir, err := os.MkdirTemp("", "captf-testground-")
	if err != nil {
		return nil, fmt.Errorf("make the private folder: %w", err)
	}
	return &ground{assets: assets, dir: dir, audit: audit}, nil
}

func (g *ground) path(name string) string { return filepath.Join(g.dir, name) }

// start brings everything up and returns the line to print.
func (g *ground) start(signals <-chan os.Signal) (*ready, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	g.port = ports[0]
	g.server = "https://127.0.0.1:" + strconv.Itoa(g.port)
	if err := g.writeCredentials(); err != nil {
		return nil, err
	}
	etcdURL := "http://127.0.0.1:" + strconv.Itoa(ports[1])
	peerURL := "http://127.0.0.1:" + strconv.Itoa(ports[2])
	g.etcd, err = startProcess(g.dir, filepath.Join(g.assets, "etcd"),
		"--name=testground",
		"--data-dir="+g.path("etcd"),
		"--listen-client-urls="+etcdURL,
		"--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=testground="+peerURL,
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
	if err != nil {
		return nil, err
	}
	if err := g.writeFlags(etcdURL); err != nil {
		return nil, err
	}
	if err := g.startAPIServer(signals); err != nil {
		return nil, err
	}
	version, err := g.client.version()
	if err != nil {
		return nil, err
	}
	if err := installCRDs(g.client); err != nil {
		return nil, err
	}
	line := &ready{Kubeconfig: g.path("kubeconfig"), Server: g.server, CA: g.path("ca.crt"), Dir: g.dir, Version: version}
	if g.audit {
		audit := g.path("audit.log")
		line.Audit = &audit
	}
	return line, nil
}

// writeFlags settles the flags of kube-apiserver.
func (g *ground) writeFlags(etcdURL string) error {
	g.flags = []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1", // else it looks for a default route
		"--secure-port=" + strconv.Itoa(g.port),
		"--etcd-servers=" + etcdURL,
		"--etcd-prefix=/captf-testground",
		"--tls-cert-file=" + g.path("server.crt"),
		"--tls-private-key-file=" + g.path("server.key"),
		"--client-ca-file=" + g.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + g.path("tokens.key"),
		"--service-account-key-file=" + g.path("tokens.pub"),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		// No controller makes the `default` ServiceAccount of a namespace, and
		// without one this plugin refuses every pod.
		"--disable-admission-plugins=ServiceAccount",
		// No endpoint may be a loopback address.
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if !g.audit {
		return nil
	}
	g.flags = append(g.flags, "--audit-policy-file="+g.path("audit.yaml"), "--audit-log-path="+g.path("audit.log"))
	policy := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n"
	return writeFiles(map[string][]byte{g.path("audit.yaml"): []byte(policy)})
}

// startAPIServer starts kube-apiserver and waits until it is ready.
func (g *ground) startAPIServer(signals <-chan os.Signal) error {
	if g.apiserver.running() {
		return fmt.Errorf("kube-apiserver runs already")
	}
	var err error
	g.apiserver, err = startProcess(g.dir, filepath.Join(g.assets, "kube-apiserver"), g.flags...)
	if err != nil {
		return err
	}
	limit := time.After(startLimit)
	for {
		reason := g.client.ready()
		if reason == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-g.apiserver.exited:
			return fmt.Errorf("kube-apiserver ended while it started: %s\n%s", g.apiserver.report(), g.etcd.report())
		case <-g.etcd.exited:
			return fmt.Errorf("etcd ended while kube-apiserver started: %s", g.etcd.report())
		case <-signals:
			return fmt.Errorf("stopped by a signal while kube-apiserver started")
		case <-limit:
			return fmt.Errorf("kube-apiserver is not ready after %s (%v): %s\n%s", startLimit, reason, g.apiserver.report(), g.etcd.report())
		}
	}
}

// stopAPIServer acts out an outage.
func (g *ground) stopAPIServer() error {
	if !g.apiserver.running() {
		return fmt.Errorf("kube-apiserver does not run")
	}
	g.apiserver.stop(stopGrace)
	g.apiserver = nil
	return nil
}

// apiserverExited is nil, and so never ready, during an outage.
func (g *ground) apiserverExited() <-chan struct{} {
	if g.apiserver == nil {
		return nil
	}
	return g.apiserver.exited
}

// close ends both children at once, as nothing of them is kept.
func (g *ground) close(keep bool) {
	g.apiserver.stop(0)
	g.etcd.stop(0)
	if keep {
		fmt.Fprintf(os.Stderr, "captf-testground: left behind: %s\n", g.dir)
		return
	}
	if err := os.RemoveAll(g.dir); err != nil {
		fmt.Fprintf(os.Stderr, "captf-testground: remove the folder: %v\n", err)
	}
}

// writeCredentials writes certificates, token keys and the admin's kubeconfig.
func (g *ground) writeCredentials() error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	server, err := ca.server()
	if err != nil {
		return err
	}
	admin, err := ca.client("admin", "system:masters")
	if err != nil {
		return err
	}
	if err := writeTokenKeys(g.path("tokens.key"), g.path("tokens.pub")); err != nil {
		return err
	}
	if g.client, err = newClient(g.server, ca.pem, admin); err != nil {
		return err
	}
	config, err := kubeconfig(g.server, ca.pem, admin)
	if err != nil {
		return err
	}
	return writeFiles(map[string][]byte{
		g.path("ca.crt"):     ca.pem,
		g.path("server.crt"): server.cert,
		g.path("server.key"): server.key,
		g.path("kubeconfig"): config,
	})
}

func kubeconfig(server string, ca []byte, user pair) ([]byte, error) {
	type object = map[string]any
	data := base64.StdEncoding.EncodeToString
	text, err := yaml.Marshal(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": "testground",
		"clusters": []object{{"name": "testground", "cluster": object{
			"server": server, "certificate-authority-data": data(ca)}}},
		"users": []object{{"name": "admin", "user": object{
			"client-certificate-data": data(user.cert), "client-key-data": data(user.key)}}},
		"contexts": []object{{"name": "testground", "context": object{
			"cluster": "testground", "user": "admin", "namespace": "default"}}},
	})
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return text, nil
}

// freePorts finds ports of the loopback address that nobody listens on.
func freePorts(count int) ([]int, error) {
	ports := make([]int, count)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() // all are held until the last is found
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-captf/kubectl-captf/tests/controlplane/crds"
)

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// client talks to the API server as admin.
type client struct {
	server string
	http   *http.Client
}

func newClient(server string, ca []byte, admin pair) (*client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read the certificate of the CA")
	}
	cert, err := tls.X509KeyPair(admin.cert, admin.key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the admin: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}}
	return &client{server: server, http: &http.Client{Transport: transport, Timeout: 15 * time.Second}}, nil
}

// do sends one request; body and result may be nil.
func (c *client) do(method, path string, body []byte, result any) error {
	request, err := http.NewRequest(method, c.server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}

// ready says why the server is not ready yet.
func (c *client) ready() error { return c.do(http.MethodGet, "/readyz", nil, nil) }

func (c *client) version() (string, error) {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	err := c.do(http.MethodGet, "/version", nil, &version)
	return version.GitVersion, err
}

// installCRDs creates every definition and waits until each one is served.
func installCRDs(c *client) error {
	files, err := fs.Glob(crds.Files, "*.yaml")
	if err != nil {
		return err
	}
	var names []string
	for _, file := range files {
		text, err := fs.ReadFile(crds.Files, file)
		if err != nil {
			return err
		}
		body, err := yaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		var created definition
		if err := c.do(http.MethodPost, crdPath, body, &created); err != nil {
			return fmt.Errorf("install %s: %w", file, err)
		}
		names = append(names, created.Metadata.Name)
	}
	limit := time.Now().Add(startLimit)
	for _, name := range names {
		for {
			served, err := c.served(name)
			if err != nil {
				return err
			}
			if served {
				break
			}
			if time.Now().After(limit) {
				return fmt.Errorf("the API server does not serve %s", name)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// definition holds what is read of a CustomResourceDefinition.
type definition struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name string `json:"name"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// served says whether discovery and the handlers know a definition. A schema
// that is not structural is an error: it would weaken every test on it.
func (c *client) served(name string) (bool, error) {
	var found definition
	if err := c.do(http.MethodGet, crdPath+"/"+name, nil, &found); err != nil {
		return false, err
	}
	established := false
	for _, condition := range found.Status.Conditions {
		switch {
		case condition.Type == "NonStructuralSchema" && condition.Status == "True":
			return false, fmt.Errorf("%s: %s", name, condition.Message)
		case condition.Type == "Established" && condition.Status == "True":
			established = true
		}
	}
	if !established {
		return false, nil
	}
	for _, version := range found.Spec.Versions {
		base := "/apis/" + found.Spec.Group + "/" + version.Name
		var resources struct {
			Resources []struct {
				Name string `json:"name"`
			} `json:"resources"`
		}
		if c.do(http.MethodGet, base, nil, &resources) != nil {
			return false, nil
		}
		listed := false
		for _, resource := range resources.Resources {
			listed = listed || resource.Name == found.Spec.Names.Plural
		}
		if !listed || c.do(http.MethodGet, base+"/"+found.Spec.Names.Plural, nil, nil) != nil {
			return false, nil
		}
	}
	return true, nil
}

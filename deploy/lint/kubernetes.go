package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// kinds are the objects that a manifest may have.
var kinds = map[metav1.TypeMeta]func() any{
	{APIVersion: "v1", Kind: "Namespace"}:                       func() any { return new(corev1.Namespace) },
	{APIVersion: "v1", Kind: "ServiceAccount"}:                  func() any { return new(corev1.ServiceAccount) },
	{APIVersion: "v1", Kind: "ConfigMap"}:                       func() any { return new(corev1.ConfigMap) },
	{APIVersion: "v1", Kind: "Service"}:                         func() any { return new(corev1.Service) },
	{APIVersion: "apps/v1", Kind: "Deployment"}:                 func() any { return new(appsv1.Deployment) },
	{APIVersion: "batch/v1", Kind: "Job"}:                       func() any { return new(batchv1.Job) },
	{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}:       func() any { return new(networkingv1.Ingress) },
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}: func() any { return new(networkingv1.NetworkPolicy) },
	{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:      func() any { return new(policyv1.PodDisruptionBudget) },
}

// lintManifests decodes every manifest of a folder and its folders, refusing unknown and duplicate fields,
// and checks the pods.
func lintManifests(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("no manifests in %s", dir))
	}
	more, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
	if err != nil {
		return err
	}
	files = append(files, more...)
	var problems []error
	for _, file := range files {
		problems = append(problems, prefix(filepath.Base(file), lintManifest(file)))
	}
	return errors.Join(problems...)
}

func lintManifest(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := lintObject(document); err != nil {
			return err
		}
	}
}

func lintObject(document []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	make := kinds[kind]
	if make == nil {
		return fmt.Errorf("%s %s is no known object", kind.APIVersion, kind.Kind)
	}
	object := make()
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return fmt.Errorf("%s: %w", kind.Kind, err)
	}
	if deployment, ok := object.(*appsv1.Deployment); ok {
		return lintDeployment(deployment)
	}
	if job, ok := object.(*batchv1.Job); ok {
		return lintPod(job.Spec.Template)
	}
	return nil
}

// lintPod checks a pod against the restricted Pod Security Standard.
func lintPod(pod corev1.PodTemplateSpec) error {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return err
	}
	results := evaluator.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec)
	if verdict := policy.AggregateCheckResults(results); !verdict.Allowed {
		return fmt.Errorf("restricted pod security: %s", verdict.ForbiddenDetail())
	}
	return nil
}

// lintDeployment checks a deployment's pods against the restricted Pod Security Standard. It also
// checks that they have probes and resource limits, are spread over nodes, and are stopped gracefully.
func lintDeployment(d *appsv1.Deployment) error {
	pod := d.Spec.Template
	problems := []error{lintPod(pod)}
	if *d.Spec.Replicas < 2 || len(pod.Spec.TopologySpreadConstraints) == 0 {
		problems = append(problems, errors.New("want several replicas, spread over nodes"))
	}
	for _, c := range pod.Spec.Containers {
		problems = append(problems, lintContainer(c, pod.Spec.TerminationGracePeriodSeconds))
	}
	return errors.Join(problems...)
}

// stopTime is the longest time that a service takes to stop: draining and deliveries.
const stopTime = 40 * time.Second

func lintContainer(c corev1.Container, grace *int64) error {
	var problems []error
	for what, ok := range map[string]bool{
		"livenessProbe, readinessProbe and startupProbe": c.LivenessProbe != nil && c.ReadinessProbe != nil && c.StartupProbe != nil,
		"requests of cpu and memory, and a limit of memory": !c.Resources.Requests.Cpu().IsZero() &&
			!c.Resources.Requests.Memory().IsZero() && !c.Resources.Limits.Memory().IsZero(),
		"readOnlyRootFilesystem":                            c.SecurityContext != nil && c.SecurityContext.ReadOnlyRootFilesystem != nil && *c.SecurityContext.ReadOnlyRootFilesystem,
		"terminationGracePeriodSeconds of the longest stop": grace != nil && time.Duration(*grace)*time.Second >= stopTime,
	} {
		if !ok {
			problems = append(problems, fmt.Errorf("container %s wants %s", c.Name, what))
		}
	}
	return errors.Join(problems...)
}

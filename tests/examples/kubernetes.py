"""Checks Kubernetes manifests against the schemas of Kubernetes' own releases, and against what its server
requires beyond them: the rules for Jobs, and the Pod Security Standard `restricted`.

usage: kubernetes.py MANIFEST...
"""

import sys

import kubernetes_validate
import yaml

# The first release that accepts all the fields, and the latest for which there are schemas.
RELEASES = ["1.29", kubernetes_validate.latest_version()]
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
# The program's own exit codes, and those of signals.
EXIT_CODES = {0, 1, 2, 3, 4, 5, 6, 129, 130, 143}
# The files that list one task per line.
LISTS = ["repositories", "tasks.jsonl"]


def job_faults(job, tasks):
    spec = job["spec"]
    template = spec["template"]["spec"]
    containers = [c["name"] for c in template["containers"] + template.get("initContainers", [])]
    if spec.get("completionMode") == "Indexed":
        if not spec.get("completions") or not spec.get("parallelism"):
            yield "an Indexed Job needs completions and parallelism"
        # The hostname of a pod is the Job's name, a hyphen and the index.
        if len(f"{job['metadata']['name']}-{spec['completions'] - 1}") > 63:
            yield "the name is too long for an Indexed Job"
        if tasks is not None and len(tasks.splitlines()) != spec["completions"]:
            yield "completions is not the number of tasks"
    elif "backoffLimitPerIndex" in spec:
        yield "backoffLimitPerIndex needs completionMode Indexed"
    rules = spec.get("podFailurePolicy", {}).get("rules", [])
    if (rules or "backoffLimitPerIndex" in spec) and template.get("restartPolicy") != "Never":
        yield "podFailurePolicy and backoffLimitPerIndex need restartPolicy Never"
    if rules and spec.get("podReplacementPolicy", "Failed") != "Failed":
        yield "podFailurePolicy needs podReplacementPolicy Failed"
    if len(rules) > 20:
        yield "podFailurePolicy has more than 20 rules"
    for rule in rules:
        if rule["action"] not in ("FailJob", "FailIndex", "Ignore", "Count"):
            yield f"no such action: {rule['action']}"
        if rule["action"] == "FailIndex" and "backoffLimitPerIndex" not in spec:
            yield "FailIndex needs backoffLimitPerIndex"
        if ("onExitCodes" in rule) == ("onPodConditions" in rule):
            yield "a rule has either onExitCodes or onPodConditions"
        codes = rule.get("onExitCodes", {})
        values = codes.get("values", [])
        if "onExitCodes" in rule:
            if codes["operator"] not in ("In", "NotIn") or not 1 <= len(values) <= 255:
                yield "onExitCodes needs an operator and values"
            if values != sorted(set(values)):
                yield "the exit codes are not in order, or there twice"
            if codes["operator"] == "In" and 0 in values:
                yield "exit code 0 is no failure"
            if codes.get("containerName") not in containers + [None]:
                yield f"no such container: {codes['containerName']}"
            if not EXIT_CODES.issuperset(values):
                yield "a rule names an exit code that the program does not have"
        for condition in rule.get("onPodConditions", []):
            if condition.get("status") not in ("True", "False", "Unknown"):
                yield "a condition's status is one of the strings True, False, Unknown"


def restricted_faults(pod):
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"{field} is set"
    of_pod = pod.get("securityContext", {})
    claimed = {v["name"] for v in pod.get("volumes", [])}
    for volume in pod.get("volumes", []):
        if not (set(volume) - {"name"}) <= VOLUMES:
            yield f"volume {volume['name']} is of a kind that is not allowed"
    for container in pod["containers"] + pod.get("initContainers", []):
        own = container.get("securityContext", {})
        name = container["name"]
        if own.get("privileged") or own.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: allowPrivilegeEscalation is not false"
        if own.get("capabilities", {}).get("drop") != ["ALL"] or own["capabilities"].get("add"):
            yield f"{name}: not all capabilities are dropped"
        if own.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True:
            yield f"{name}: runAsNonRoot is not true"
        if own.get("runAsUser", of_pod.get("runAsUser")) == 0:
            yield f"{name}: runs as root"
        seccomp = own.get("seccompProfile", of_pod.get("seccompProfile", {}))
        if seccomp.get("type") not in ("RuntimeDefault", "Localhost"):
            yield f"{name}: no seccomp profile"
        # Beyond the standard: only volumes are writable.
        if own.get("readOnlyRootFilesystem") is not True:
            yield f"{name}: the root file system can be written to"
        for mount in container.get("volumeMounts", []):
            if mount["name"] not in claimed:
                yield f"{name}: no such volume: {mount['name']}"


def main(paths):
    faults = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            documents = list(yaml.safe_load_all(file))
        lists = [d["data"].get(name) for d in documents if d["kind"] == "ConfigMap" for name in LISTS]
        tasks = next(filter(None, lists), None)
        for document in documents:
            here = f"{path}: {document['kind']} {document['metadata']['name']}"
            for release in RELEASES:
                try:
                    kubernetes_validate.validate(document, release, strict=True)
                except kubernetes_validate.ValidationError as fault:
                    faults.append(f"{here}: {release}: {fault.message}")
            if document["kind"] == "Job":
                faults += [f"{here}: {fault}" for fault in job_faults(document, tasks)]
                faults += [f"{here}: {fault}" for fault in restricted_faults(document["spec"]["template"]["spec"])]
            if document["kind"] == "Pod":
                faults += [f"{here}: {fault}" for fault in restricted_faults(document["spec"])]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


sys.exit(main(sys.argv[1:]))

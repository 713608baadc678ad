"""The RayService manifest, as far as it can be held without a Kubernetes: its shape, and that its parts agree.

The shapes below are what KubeRay's own schema asks of the fields that the manifest uses; nothing else is let through,
so that a misspelt key, which the API server would prune in silence, fails here.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ray.serve.schema import ServeDeploySchema

from hermes_memory.config import load_settings
from tests.unit import deploy_files

QUANTITY = r"^\d+(\.\d+)?(m|Mi|Gi)?$"
STRING, COUNT = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}
STRINGS = {"type": "object", "additionalProperties": STRING}


def thing(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these keys and no others."""
    properties = {**required, **(optional or {})}
    return {
        "type": "object", "required": list(required), "properties": properties, "additionalProperties": False,
    }  # fmt: skip


def several(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of, "minItems": 1}


SECRET = thing({"secretKeyRef": thing({"name": STRING, "key": STRING})})
PROBE = thing(
    {
        "exec": thing({"command": several(STRING)}), "periodSeconds": COUNT, "timeoutSeconds": COUNT,
        "failureThreshold": COUNT, "initialDelaySeconds": COUNT,
    }
)  # fmt: skip
AMOUNTS = {"type": "object", "additionalProperties": {"type": "string", "pattern": QUANTITY}}
RESOURCES = thing({"requests": AMOUNTS, "limits": AMOUNTS})
CONTAINER = thing(
    {
        "name": {"enum": ["ray-head", "ray-worker"]},
        "image": {"type": "string", "pattern": r"^[a-z-]+:\d+\.\d+\.\d+(-gpu)?$"},
        "imagePullPolicy": {"enum": ["IfNotPresent", "Always"]},
        "securityContext": thing(
            {
                "allowPrivilegeEscalation": {"const": False},
                "capabilities": thing({"drop": {"const": ["ALL"]}}),
            }
        ),
        "envFrom": several(thing({"configMapRef": thing({"name": STRING})})),
        "env": several(thing({"name": STRING, "valueFrom": SECRET})),
        "ports": several(thing({"name": STRING, "containerPort": {"type": "integer", "maximum": 65535}})),
        "resources": RESOURCES,
        "readinessProbe": PROBE,
        "livenessProbe": PROBE,
    }
)
POD = thing(
    {
        "terminationGracePeriodSeconds": COUNT,
        "securityContext": thing(
            {
                "runAsNonRoot": {"const": True}, "runAsUser": {"type": "integer", "minimum": 1}, "fsGroup": COUNT,
                "seccompProfile": thing({"type": STRING}),
            }
        ),
        "containers": {**several(CONTAINER), "maxItems": 1},
    },
    {
        "tolerations": several(thing({"key": STRING, "operator": STRING, "effect": STRING})),
        "topologySpreadConstraints": several(
            thing(
                {
                    "maxSkew": COUNT, "topologyKey": STRING, "whenUnsatisfiable": STRING,
                    "labelSelector": thing({"matchLabels": STRINGS}),
                }
            )
        ),
    },
)  # fmt: skip
TEMPLATE = thing({"metadata": thing({"labels": STRINGS}), "spec": POD})
CLUSTER = thing(
    {
        "rayVersion": STRING,
        "authOptions": thing({"mode": {"const": "token"}}),
        "gcsFaultToleranceOptions": thing({"redisAddress": STRING, "redisPassword": thing({"valueFrom": SECRET})}),
        "enableInTreeAutoscaling": {"const": True},
        "autoscalerOptions": thing(
            {
                "version": {"enum": ["v1", "v2"]}, "upscalingMode": {"enum": ["Default", "Aggressive", "Conservative"]},
                "idleTimeoutSeconds": COUNT, "imagePullPolicy": STRING, "resources": RESOURCES,
            }
        ),
        "headGroupSpec": thing({"rayStartParams": STRINGS, "template": TEMPLATE}),
        "workerGroupSpecs": several(
            thing(
                {
                    "groupName": STRING, "replicas": COUNT, "minReplicas": COUNT, "maxReplicas": COUNT,
                    "rayStartParams": STRINGS, "template": TEMPLATE,
                }
            )
        ),
    }
)  # fmt: skip
RAY_SERVICE = thing(
    {
        "apiVersion": {"const": "ray.io/v1"},
        "kind": {"const": "RayService"},
        "metadata": thing({"name": STRING, "labels": STRINGS}),
        "spec": thing(
            {
                "serviceUnhealthySecondThreshold": COUNT, "deploymentUnhealthySecondThreshold": COUNT,
                "excludeHeadPodFromServeSvc": {"const": True}, "serveConfigV2": STRING, "rayClusterConfig": CLUSTER,
                "upgradeStrategy": thing({"type": {"enum": ["NewCluster", "NewClusterWithIncrementalUpgrade", "None"]}}),
            }
        ),
    }
)  # fmt: skip


@pytest.fixture
def objects() -> dict[str, dict[str, Any]]:
    return deploy_files.manifests()


def cluster_of(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    config: dict[str, Any] = objects["RayService"]["spec"]["rayClusterConfig"]
    return config


def groups(objects: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {group["groupName"]: group for group in cluster_of(objects)["workerGroupSpecs"]}


def pods(objects: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The pod templates: of the head and of each group."""
    head = {"head": cluster_of(objects)["headGroupSpec"]["template"]}
    return head | {name: group["template"] for name, group in groups(objects).items()}


def custom(group: dict[str, Any]) -> dict[str, Any]:
    """The Ray resources of a group; KubeRay takes JSON that is quoted once more."""
    resources: dict[str, Any] = json.loads(json.loads(group["rayStartParams"]["resources"]))
    return resources


def test_the_service_has_the_shape_that_kuberay_asks_for(objects: dict[str, dict[str, Any]]) -> None:
    jsonschema.validate(objects["RayService"], RAY_SERVICE)
    assert set(objects) == {"ConfigMap", "RayService", "PodDisruptionBudget", "NetworkPolicy"}


def test_serve_is_told_what_configs_serve_yaml_says(objects: dict[str, dict[str, Any]]) -> None:
    told = yaml.safe_load(objects["RayService"]["spec"]["serveConfigV2"])
    assert told == deploy_files.document("configs/serve.yaml")
    ServeDeploySchema.model_validate(told)


def test_every_pod_runs_this_ray_and_this_version(objects: dict[str, dict[str, Any]]) -> None:
    assert cluster_of(objects)["rayVersion"] == version("ray")
    images = {name: pod["spec"]["containers"][0]["image"] for name, pod in pods(objects).items()}
    ours = f"hermes-memory:{version('hermes-memory')}"
    assert images == {"head": ours, "cpu": ours, "gpu": f"{ours}-gpu"}


def test_the_pools_are_those_of_the_cluster_launcher(objects: dict[str, dict[str, Any]]) -> None:
    nodes = deploy_files.document("ray_cluster.yaml")["available_node_types"]
    for name, group in groups(objects).items():
        node = nodes[f"{name}_worker"]
        assert (group["minReplicas"], group["maxReplicas"]) == (node["min_workers"], node["max_workers"])
        assert group["replicas"] == group["minReplicas"]
        assert custom(group) == node["resources"]
    assert cluster_of(objects)["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"


def test_hosts_stand_on_cpu_pods_only_and_the_least_of_them_carry_all(
    objects: dict[str, dict[str, Any]],
) -> None:
    actors = load_settings(Path("cluster")).actors
    having = {name for name, group in groups(objects).items() if actors.node_resource in custom(group)}
    assert having == {"cpu"}
    cpu = groups(objects)["cpu"]
    assert cpu["minReplicas"] * custom(cpu)[actors.node_resource] >= actors.hosts


def test_gpu_pods_ask_for_a_gpu_and_nobody_else_does(objects: dict[str, dict[str, Any]]) -> None:
    for name, pod in pods(objects).items():
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        assert ("nvidia.com/gpu" in limits) == (name == "gpu")


def test_every_pod_has_the_switches_the_addresses_and_the_secrets(objects: dict[str, dict[str, Any]]) -> None:
    settings = objects["ConfigMap"]
    for pod in pods(objects).values():
        (container,) = pod["spec"]["containers"]
        assert container["envFrom"] == [{"configMapRef": {"name": settings["metadata"]["name"]}}]
        secret = {one["name"] for one in container["env"]}
        assert set(settings["data"]) | secret == deploy_files.addresses() | set(deploy_files.SWITCHES)
    assert settings["data"].items() >= deploy_files.SWITCHES.items()


def test_the_heads_tables_are_in_the_ledgers_redis(objects: dict[str, dict[str, Any]]) -> None:
    options = cluster_of(objects)["gcsFaultToleranceOptions"]
    assert objects["ConfigMap"]["data"]["HERMES_REDIS_URL"] == f"redis://{options['redisAddress']}/0"
    (password,) = {
        json.dumps(one["valueFrom"])
        for pod in pods(objects).values()
        for one in pod["spec"]["containers"][0]["env"]
        if one["name"] == "HERMES_REDIS_PASSWORD"
    }
    assert options["redisPassword"]["valueFrom"] == json.loads(password)


def test_probes_ask_where_somebody_answers(objects: dict[str, dict[str, Any]]) -> None:
    port = deploy_files.document("configs/serve.yaml")["http_options"]["port"]
    raylet = "http://localhost:52365/api/local_raylet_healthz"
    for name, pod in pods(objects).items():
        (container,) = pod["spec"]["containers"]
        for probe in ("readinessProbe", "livenessProbe"):
            command = container[probe]["exec"]["command"][-1]
            asked = re.findall(r"http://\S+", command)
            other = (
                "http://localhost:8265/api/gcs_healthz"
                if name == "head"
                else f"http://localhost:{port}/-/healthz"
            )
            serving = (
                name == "head" or probe == "readinessProbe"
            )  # a worker without a replica is alive, not ready
            assert asked == [raylet, other] if serving else [raylet]
            waits = [int(seconds) for seconds in re.findall(r"-T (\d+)", command)]
            assert container[probe]["timeoutSeconds"] > sum(waits)


def test_the_disruption_budget_and_the_policy_select_the_pods(objects: dict[str, dict[str, Any]]) -> None:
    labels = {name: pod["metadata"]["labels"].items() for name, pod in pods(objects).items()}
    budget = objects["PodDisruptionBudget"]["spec"]
    chosen = budget["selector"]["matchLabels"].items()
    assert {name for name, own in labels.items() if own >= chosen} == {"cpu"}
    assert budget["maxUnavailable"] < groups(objects)["cpu"]["minReplicas"]
    policy = objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"].items()
    assert {name for name, own in labels.items() if own >= policy} == set(labels)


def test_only_the_clusters_own_pods_reach_replicas_and_ray(objects: dict[str, dict[str, Any]]) -> None:
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    own, *others = policy["ingress"]
    assert own == {"from": [{"podSelector": policy["podSelector"]}]}
    for rule in others:
        assert rule["from"] and all(list(one) == ["namespaceSelector"] for one in rule["from"])
        ports = {one["port"] for one in rule["ports"]}
        assert ports and ports <= {8000, 8080, 8265, 9101}
        trusted = rule["from"][0]["namespaceSelector"]["matchLabels"]
        assert 8265 not in ports or trusted == {"kubernetes.io/metadata.name": "kuberay-operator"}

"""Measures `lock inspect` on one object: requests, longest chain, bytes, wall time; beside kubectl on the same server.

    make bench
"""

import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "record"))
import locks  # noqa: E402
from api import NS, Server, ago, lock, pod, suffix  # noqa: E402
from record import ground  # noqa: E402

ROUNDS = 15


def timed(command, env):
    """Median wall time in milliseconds; the command may exit with a finding's code."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run(command, env=env, capture_output=True, check=False)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def main():
    plugin = sys.argv[1]
    with ground() as kubeconfig:
        server = Server(kubeconfig, os.environ["CAPTF_TEST_KUBECTL"])
        env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "KUBECONFIG": kubeconfig}
        cases = {"free": locks.free, "live": locks.live, "stale": locks.stale_node_lost, "foreign": locks.foreign_pod}
        lease = "lock-tfstate-default-" + suffix("TerraformCluster", "prod")
        rows = []
        for name, case in cases.items():
            server.clear()
            case(server)
            command = [plugin, "lock", "inspect", "terraformcluster/prod", "-n", NS]
            log = subprocess.run([*command, "-v=6"], env=env, capture_output=True, text=True, check=False).stderr
            requests, chain, size = re.search(r"(\d+) requests, longest chain (\d+), (\d+) bytes", log).groups()
            one = timed(command, env)
            kubectl = [server.kubectl, "-n", NS, "get"]
            two = timed([*kubectl, "terraformclusters.infrastructure.cluster.x-k8s.io", "prod", "-o", "yaml"], env)
            two += timed([*kubectl, "leases", lease, "-o", "yaml"], env)
            rows.append((name, requests, chain, size, f"{one:.0f} ms", f"{two:.0f} ms"))
        print(f"\n{'lock':8} {'requests':>8} {'chain':>6} {'bytes':>8} {'wall':>8} {'two kubectl gets':>17}   (median of {ROUNDS})")
        for row in rows:
            print(f"{row[0]:8} {row[1]:>8} {row[2]:>6} {row[3]:>8} {row[4]:>8} {row[5]:>17}")
        help_time = timed([plugin, "--help"], env)
        version = timed([plugin, "version", "--client"], env)
        kubectl_version = timed([server.kubectl, "version", "--client"], env)
        print(f"\n--help {help_time:.1f} ms, version --client {version:.1f} ms; kubectl version --client {kubectl_version:.1f} ms")


main()

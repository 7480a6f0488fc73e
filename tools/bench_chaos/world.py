"""The cluster under test: four nodes behind wires that can be held, short deadlines, every driver call traced."""
import pathlib
import subprocess

from cluster import Cluster, Programs
from daemon import Daemon
from proxy import Proxy
from shapes import CARD, NODES


def make_cluster():
    group = {"quiesce_deadline": "1 s", "broken_grace": "300 ms", "gang_wait": "10 s"}
    cluster = Cluster(nodes=0, groups={"g": group, "h": group},
                      cards=("--cards", "2", "--bytes", str(CARD), "--context_bytes", "65536", "--trace", "all"),
                      master={"heartbeat": "200 ms", "suspect_after": "600 ms"},
                      node={"save_deadline": "500 ms", "restore_deadline": "500 ms", "freed_deadline": "200 ms"})
    cluster.save_deadline, cluster.suspect_after, cluster.heartbeat = 0.5, 0.6, 0.2
    cluster.card_tool = Programs.card
    return cluster


def start_nodes(cluster, observer):
    proxies = []
    for i, name in enumerate(NODES):
        proxies.append(Proxy(cluster.address))
        node = cluster.add_node(name, master=proxies[-1].address)
        for card in range(2):  # what a killed daemon leaves behind: half of the drivers undo a call, half do not
            subprocess.run([cluster.card_tool, "set", node.cards / str(card), f"strands={'yes' if i % 2 else 'no'}"],
                           check=True)
        observer.follow(i, node.cards / "trace")
        node.start_connected()
    return proxies


def keep_logs(folder, cluster):
    folder.mkdir(parents=True, exist_ok=True)
    for i, daemon in enumerate(d for d in cluster._kept if isinstance(d, Daemon)):
        text = "".join(f"{at:.6f} {line}\n" for at, line in zip(daemon.times, daemon.lines))
        (folder / f"{i:03}-{daemon.name}.log").write_text(text)
    for node in cluster.nodes:
        (folder / f"{node.name}.trace").write_bytes((node.cards / "trace").read_bytes())


def alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"

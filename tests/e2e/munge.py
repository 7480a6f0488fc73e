"""A munged of our own at its usual place, which only who is in its mount namespace sees."""
import os
import shutil

from daemon import Daemon


def available():
    return os.getuid() == 0 and root_is_mounted() and all(map(shutil.which, ("munged", "unshare", "nsenter")))


def root_is_mounted():
    """False in a chroot into a plain folder: mounts of one's own have nothing there to stand on."""
    with open("/proc/self/mountinfo") as mounts:
        return any(line.split()[4] == "/" for line in mounts)


class Munge:
    """with Munge(folder) as m: programs started with m.wrap in front prove and check who they are."""

    def __init__(self, folder):
        self.folder = folder
        key = self.folder / "key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o400)

    def __enter__(self):
        files = " ".join(f"--{name}-file={self.folder / name}" for name in ("key", "seed", "pid"))
        # libmunge knows one place only, so that place is ours in here.
        script = f"mount -t tmpfs -o mode=755 none /run && mkdir /run/munge && exec munged --foreground {files}"
        self.daemon = Daemon("munged", ["unshare", "--mount", "--propagation", "private", "sh", "-c", script])
        self.daemon.wait_for(r"Created \d+ work threads")
        self.wrap = ["nsenter", "--mount", "--root", f"--target={self.daemon.pid}", "--"]
        return self

    def __exit__(self, *_):
        self.daemon.kill()

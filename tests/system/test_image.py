# SPDX-License-Identifier: ISC
"""make image: the layout by its digests, and the relay in the unpacked root, with nothing else there."""

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

import pytest

from lab.net import wait_until
from lab.relay import REPOSITORY, binary

pytestmark = [pytest.mark.plain_only, pytest.mark.xdist_group("image"), pytest.mark.skipif(os.getuid() != 0, reason="chroot is root's")]

SINK = 'route "*" {\n\trelay = { "[127.0.0.1]:2526" }'
# Run in a network, a mount and a process namespace: the image's entry point as its user, beside a sink.
INSIDE = """
mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && ip link set lo up || exit 1
chroot "$1" /usr/sbin/sluice sink -d /tmp/received >/dev/null &
chroot --userspec=2525:2525 --groups= "$@" &
echo running
read -r _
kill %2
wait %2
echo "ended $?"
"""


@pytest.fixture(name="image", scope="module")
def fixture_image(module_lab):
    """The files of the image's layout, by name."""
    target = module_lab.folder("image") / "image.tar"
    assert os.path.samefile(binary(), os.path.join(REPOSITORY, "sluice")), "the image is made of ./sluice"
    done = subprocess.run([os.path.join(REPOSITORY, "etc", "make-image"), target], capture_output=True, text=True,
                          timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    with tarfile.open(target) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
    files["path"] = target
    return files


def blob(image, descriptor):
    """Return the bytes that a descriptor stands for, once they are what it says."""
    content = image["blobs/" + descriptor["digest"].replace(":", "/")]
    assert len(content) == descriptor["size"]
    return content


def test_every_digest_is_right_and_both_descriptions_agree(image):
    for name, content in image.items():
        if name.startswith("blobs/"):
            assert name == "blobs/sha256/" + hashlib.sha256(content).hexdigest()
    assert json.loads(image["oci-layout"])["imageLayoutVersion"] == "1.0.0"
    manifest = json.loads(blob(image, json.loads(image["index.json"])["manifests"][0]))
    config = json.loads(blob(image, manifest["config"]))
    layer, = [gzip.decompress(blob(image, one)) for one in manifest["layers"]]
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]
    docker, = json.loads(image["manifest.json"])
    assert docker["Config"].endswith(manifest["config"]["digest"].removeprefix("sha256:"))
    assert docker["Layers"] == ["blobs/" + manifest["layers"][0]["digest"].replace(":", "/")]
    assert config["config"]["Entrypoint"] == ["/usr/sbin/sluice", "serve"] and config["config"]["User"] == "2525:2525"


def test_the_same_tree_gives_the_same_bytes(image, tmp_path):
    again = tmp_path / "again.tar"
    subprocess.run([os.path.join(REPOSITORY, "etc", "make-image"), again], check=True, capture_output=True, timeout=250)
    assert again.read_bytes() == image["path"].read_bytes()


@pytest.mark.skipif(subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0
                    if shutil.which("docker") else True, reason="no docker answers here")
def test_docker_loads_it(image):
    done = subprocess.run(["docker", "load", "-i", image["path"]], capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0 and "Loaded image: sluice:" in done.stdout, done.stdout + done.stderr
    done = subprocess.run(["docker", "run", "--rm", "sluice:0.1", "--help"], capture_output=True, text=True, timeout=250, check=False)
    assert "usage: sluice serve" in done.stdout


def unpack(image, root):
    """Lay out the image's root; return its configuration."""
    manifest = json.loads(blob(image, json.loads(image["index.json"])["manifests"][0]))
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob(image, manifest["layers"][0])))) as layer:
        layer.extractall(root, numeric_owner=True)
    return json.loads(blob(image, manifest["config"]))["config"]


def test_a_message_goes_through_the_unpacked_root(image, lab):
    root = lab.folder("root")
    config = unpack(image, root)
    root.chmod(0o755)
    (root / "proc").mkdir()
    (root / "tmp" / "received").mkdir()
    conf = root / "etc" / "sluice" / "sluice.conf"
    conf.write_text(conf.read_text(encoding="utf-8").replace('route "*" {', SINK, 1), encoding="utf-8")
    with open(root / "log", "wb") as log:
        machine = subprocess.Popen(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", INSIDE, "bash",
                                    root, *config["Entrypoint"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert machine.stdout.readline() == "running\n"
        log = root / "log"
        wait_until(lambda: " ready " in log.read_text() or machine.poll() is not None, 60, "the relay")
        first = f"/proc/{machine.pid}/task/{machine.pid}/children"
        pid = open(first, encoding="ascii").read().split()[0]
        within = ["nsenter", "--net", "--mount", "--pid", "-t", pid]
        text = "Subject: through the image\n\nhello\n"
        subprocess.run([*within, "chroot", root, "/usr/sbin/sendmail", "a@dest.test"], input=text, text=True, check=True, timeout=250)
        wait_until(lambda: list((root / "tmp" / "received").glob("*.eml")), 60, "the message")
        assert "Subject: through the image" in next((root / "tmp" / "received").glob("*.eml")).read_text()
        health = subprocess.run([*within, "chroot", root, *config["Healthcheck"]["Test"][1:]], capture_output=True, check=False, timeout=250)
        assert health.returncode == 0
        machine.stdin.write("\n")
        machine.stdin.flush()
        assert machine.stdout.readline().strip() == "ended 0", log.read_text()
        assert "running_as_root" not in log.read_text() and " sandbox files=restricted" in log.read_text()
    finally:
        machine.kill()
        machine.wait()
        machine.stdin.close()
        machine.stdout.close()


def test_nobody_from_outside_may_relay_unasked(image, tmp_path):
    unpack(image, tmp_path)
    text = (tmp_path / "etc" / "sluice" / "sluice.conf").read_text(encoding="utf-8")
    assert '\taddress = {"0.0.0.0:2525"}' in text and '#networks = {"127.0.0.0/8", "::1"}' in text

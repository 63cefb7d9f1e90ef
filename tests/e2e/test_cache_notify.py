# SPDX-License-Identifier: Apache-2.0
"""`Files Notify`: what the kernel reports is seen by the next request, and the rest within the interval. With an
interval of an hour a report that is missed is not made up for."""

import mmap
import os
import shutil
import signal
import threading

import pytest

from harness import build
from harness.caching import await_kept, await_settled, needs_cache, start_cached
from harness.content import populate
from harness.server import await_true, links_of_descriptors, section

pytestmark = [needs_cache, pytest.mark.single_protocol, pytest.mark.usefixtures("clock")]

# The number of watches is a limit of the user namespace, too.
FEW_WATCHES = 'echo 3 > /proc/sys/user/max_inotify_watches && exec "$@"'


@pytest.fixture
def noticed(serve, clock):
    """A server that is notified, with a client that has asked for each of the paths until they are kept."""

    def start(paths, files, mode="Notify 1h", **rest):
        server = start_cached(serve, mode, files=files, **rest)
        client = server.connect()
        await_settled(server.root, clock)
        for path in paths:
            await_kept(server, client, path)
            client.ask(path)  # what is kept is looked at once more, and watched from then on
        return server, client

    return start


def test_hits_make_no_calls_for_the_file(noticed):
    """Neither for a small file nor for one that is sent from its descriptor."""
    server, client = noticed(["/d/a.txt", "/d/large.bin"], {"d/a.txt": b"a", "d/large.bin": bytes(100_000)})
    before = server.count("revalidated")
    for _ in range(50):
        assert client.ask("/d/a.txt").body == b"a"
        assert len(client.ask("/d/large.bin").body) == 100_000
    assert server.count("revalidated") == before
    await_true(lambda: server.level("watched_folders") == 3, 60, "the root, the one above and the one below")


@pytest.mark.slow
def test_a_change_concerns_few_others(noticed):
    """An entry that is looked at again because of another name is not loaded again."""
    files = {f"{n}.txt": b"text" for n in range(100)}
    server, client = noticed([f"/{name}" for name in files], files)
    before, misses = server.count("revalidated"), server.count("misses")
    (server.root / "0.txt").write_bytes(b"new")
    for name in files:
        assert client.ask(f"/{name}").body == (b"new" if name == "0.txt" else b"text")
    assert server.count("misses") == misses + 1
    assert server.count("revalidated") - before < 30


def test_a_name_below_folders_that_are_made(noticed):
    server, client = noticed(["/one/two/three.txt", "/one"], {"a.txt": b"a"})
    for _ in range(3):
        (server.root / "one").mkdir()
        assert client.ask("/one").status == 301
        (server.root / "one/two").mkdir()
        assert client.ask("/one/two/three.txt").status == 404
        (server.root / "one/two/three.txt").write_bytes(b"three")
        assert client.ask("/one/two/three.txt").body == b"three"
        shutil.rmtree(server.root / "one")
        assert client.ask("/one/two/three.txt").status == client.ask("/one").status == 404


def test_folders_that_are_moved(noticed):
    files = {"a/b/c.txt": b"old", "other/b/c.txt": b"new"}
    server, client = noticed(["/a/b/c.txt"], files)
    root = server.root
    for _ in range(5):
        (root / "a").rename(root / "old")
        assert client.ask("/a/b/c.txt").status == 404
        (root / "other").rename(root / "a")
        assert client.ask("/a/b/c.txt").body == b"new"
        (root / "a").rename(root / "other")
        (root / "old").rename(root / "a")
        assert client.ask("/a/b/c.txt").body == b"old"


def replace_link(folder, letter):
    (folder / "new").symlink_to(letter)
    (folder / "new").rename(folder / "current")


def move_folders(folder, letter):
    """The former root gets its own name again, by which the test finds it."""
    current = folder / "current"
    current.rename(folder / current.joinpath("name.txt").read_text())
    (folder / letter).rename(current)


@pytest.mark.parametrize("swap", [replace_link, move_folders])
def test_a_root_that_is_swapped(serve, tmp_path, swap, clock):
    """The next request sees it, whichever worker has it; what was kept of a root is not served for the other."""
    for letter in "ab":
        populate(tmp_path / letter, {"name.txt": letter.encode(), f"{letter}.txt": b"only here"})
    if swap is move_folders:
        (tmp_path / "a").rename(tmp_path / "current")
    else:
        replace_link(tmp_path, "a")
    await_settled(tmp_path, clock)
    server = start_cached(serve, "Notify 1h", {"Workers": 4, "Scheduler": "fair"}, root=tmp_path / "current")
    clients = [server.connect() for _ in range(8)]
    for n in range(30):
        letter, other = "ba"[n % 2], "ab"[n % 2]
        swap(tmp_path, letter)
        for client in clients:
            assert client.ask("/name.txt").body == letter.encode()
        for client in clients:
            assert client.ask(f"/{letter}.txt").body == b"only here"
            assert client.ask(f"/{other}.txt").status == 404
    server.wait_log("was replaced and is now the folder", 30)


def test_swaps_amid_requests(serve, tmp_path, clock):
    """Each answer is of a root that was there since its request was sent, while others swap it."""
    for n in range(10):
        populate(tmp_path / f"r{n}", {"n.txt": b"%d" % n})
    (tmp_path / "current").symlink_to("r0")
    await_settled(tmp_path, clock)
    server = start_cached(serve, "Notify 1h", {"Workers": 4, "Scheduler": "fair"}, root=tmp_path / "current")
    done, swaps, wrong = threading.Event(), [0], []

    def ask():
        with server.connect() as client:
            while not done.is_set():
                before = swaps[0]
                seen = int(client.ask("/n.txt").body)
                later = swaps[0] + 1  # one may be under way
                if seen not in {n % 10 for n in range(before, later + 1)}:
                    wrong.append((before, seen, later))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for n in range(1, 400):
        (tmp_path / "new").symlink_to(f"r{n % 10}")
        (tmp_path / "new").rename(tmp_path / "current")
        swaps[0] = n
    done.set()
    for thread in threads:
        thread.join(60)
    assert not wrong


# ── what the kernel does not report is left to the interval ──


def await_seen(client, path, body):
    """Within 1 s; the rest is what a loaded machine needs."""
    await_true(lambda: client.ask(path).body == body, 60, f"{body} at {path}", pause=0.05)


def test_a_mapping_is_written(noticed):
    server, client = noticed(["/a.bin"], {"a.bin": b"old!"}, "Notify 1s")
    with open(server.root / "a.bin", "r+b") as file, mmap.mmap(file.fileno(), 4) as pages:
        pages[:] = b"new!"
        pages.flush()
        await_seen(client, "/a.bin", b"new!")


def test_a_name_elsewhere(noticed, tmp_path, clock):
    """The file is written by a name in a folder that is not watched."""
    server, client = noticed(["/a.txt"], {"a.txt": b"old"}, "Notify 1s")
    os.link(server.root / "a.txt", tmp_path / "elsewhere")
    await_settled(server.root, clock)
    await_kept(server, client, "/a.txt")
    (tmp_path / "elsewhere").write_bytes(b"new")
    await_seen(client, "/a.txt", b"new")


def test_links(noticed, tmp_path):
    """A link in the path and one at its end: their folders do not report what their targets become."""
    populate(tmp_path / "targets", {"one/a.txt": b"one", "two/a.txt": b"two"})
    server, client = noticed([], {"x.txt": b"x"}, "Notify 1s", host={"SymLink": "On"})
    (server.root / "dir").symlink_to(tmp_path / "targets/one")
    (server.root / "a.txt").symlink_to(tmp_path / "targets/one/a.txt")
    for path in ("/dir/a.txt", "/a.txt"):
        await_kept(server, client, path)
        client.ask(path)
    (tmp_path / "targets/one/a.txt").write_bytes(b"new")
    for path in ("/dir/a.txt", "/a.txt"):
        await_seen(client, path, b"new")
    (server.root / "dir").unlink()
    (server.root / "dir").symlink_to(tmp_path / "targets/two")
    await_seen(client, "/dir/a.txt", b"two")


def test_no_more_watches(noticed):
    """One line in the log; what is watched stays so, and other folders are as with Revalidate."""
    files = {f"d{n}/a.txt": b"old" for n in range(6)}
    wrapper = ["unshare", "-U", "-r", "sh", "-c", FEW_WATCHES, "sh"]
    if not build.can_mount():
        pytest.skip("this user can have no namespaces of its own")
    server, client = noticed([f"/{name}" for name in files], files, "Notify 1s", wrapper=wrapper)
    await_true(lambda: server.level("watched_folders") == 3, 60, "all watches are used")
    server.wait_log("3 folders are watched for changes, and no more can be")
    for name in files:
        (server.root / name).write_bytes(b"new")
    for name in files:
        await_seen(client, f"/{name}", b"new")
    assert server.log.count("no more can be") == 1


def test_a_mount_over_a_folder(noticed):
    if not build.can_mount():
        pytest.skip("this user can have no mounts of its own")
    wrapper = ["unshare", "-m", "--propagation", "private"]
    server, client = noticed(["/d/a.txt"], {"d/a.txt": b"below", "e/a.txt": b"mounted"}, "Notify 1s", wrapper=wrapper)
    bind = f"mount --bind {server.root}/e {server.root}/d"
    assert os.system(f"nsenter -m -t {server.pid} {bind}") == 0
    await_seen(client, "/d/a.txt", b"mounted")
    assert os.system(f"nsenter -m -t {server.pid} umount {server.root}/d") == 0
    await_seen(client, "/d/a.txt", b"below")


# ── reloads ──


def reload(server, count=1):
    server.baseline += 2 if count == 1 else 0  # of the thread that ends a generation
    server.send_signal(signal.SIGHUP)
    server.wait_log("the new configuration is in use", count)


def test_a_reload_that_ends_notification(noticed):
    """And one that begins it again: entries that were not watched meanwhile are looked at."""
    server, client = noticed(["/d/a.txt"], {"d/a.txt": b"1"})
    site = server.conf / "sites/default"
    text = site.read_text()
    client.close()
    for n, mode in enumerate(["Immutable", "Notify 1h", "Revalidate 1h", "Notify 1h"]):
        site.write_text(text.replace("Files Notify 1h", f"Files {mode}"))
        reload(server, n + 1)
        with server.connect() as fresh:
            fresh.ask("/d/a.txt")
            (server.root / "d/a.txt").write_bytes(b"%d" % n)
            if mode.startswith("Notify"):
                assert fresh.ask("/d/a.txt").body == b"%d" % n


def test_folders_of_a_removed_host_are_not_watched_for_ever(noticed):
    """The kernel's watches go with the process; the queue of events that are not read is bounded by the kernel."""
    server, client = noticed(["/d/a.txt"], {"d/a.txt": b"a"})
    site = server.conf / "sites/default"
    site.write_text(site.read_text().replace("Files Notify 1h", "Files Off"))
    client.close()
    reload(server)
    for n in range(20_000):
        (server.root / "d" / f"{n % 2}").write_bytes(b"")
    with server.connect() as fresh:
        assert fresh.ask("/d/a.txt").body == b"a"
    server.assert_healthy()


def count_instances(pid):
    return list(links_of_descriptors(pid).values()).count("anon_inode:inotify")


def test_instances_of_inotify(chain):
    """One for what is kept, whatever is loaded again; that of an upgrade comes when the new server keeps something."""
    text = section("SERVER", {"Listen": "127.0.0.1:0", "Workers": 2}) + "[CACHE]\n    Files Notify 1h\n"
    servers = chain(modules=["cache.so"], files={"monkey.conf": text})

    def await_instance():
        def is_there():
            servers.ask()
            return count_instances(servers.pids[-1]) == 1

        await_true(is_there, 60, "an instance")

    for number in range(1, 21):
        await_instance()
        os.kill(servers.pids[-1], signal.SIGHUP)
        servers.server.wait_log("the new configuration is in use", number)
    servers.upgrade()
    await_instance()
    servers.await_old()

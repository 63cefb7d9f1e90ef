# SPDX-License-Identifier: Apache-2.0
"""Writers for cache_consistency.py: each changes a few paths in one way, and records what they are."""

import functools
import itertools
import os
import random
import shutil

from .cache_history import DENIED, FOLDER, MISSING, Ask, Below, Coded, Content, Joined, Slot, changing

SMALL, LARGE = 8 << 10, 120_000  # rooms: at most BodyMax, and more than a socket takes at once


class Workspace:
    """The folder of the writers' files. The server may see the root under another path."""

    def __init__(self, root):
        self.root, self.numbers = root, itertools.count()

    def name_apart(self):
        """A path that no client asks for."""
        (self.root / ".new").mkdir(exist_ok=True)
        return self.root / ".new" / str(next(self.numbers))

    def write_apart(self, content, seconds=None):
        """A file of that content; `seconds` makes it older."""
        path = self.name_apart()
        write_file(path, content)
        if seconds is not None:
            os.utime(path, ns=(content.mtime - seconds * 10**9,) * 2)
            learn_time(path, content)
        return path

    def link_apart(self, target):
        path = self.name_apart()
        path.symlink_to(target)
        return path


def learn_time(path, content):
    content.mtime = os.stat(path).st_mtime_ns


def write_file(path, content):
    with open(path, "wb") as file:
        file.write(content.body())
    os.chmod(path, 0o644)
    learn_time(path, content)


class Writer:
    """`lower` makes what lies in the lower layer of an overlay; `start` makes the rest, below the mounted root."""

    reported = True  # as in Ask

    def __init__(self, workspace, name, room, pause, source):
        self.workspace, self.name, self.room, self.pause, self.random = workspace, name, room, pause, source
        self.views = []  # [(path, view, host, Accept-Encoding)]; "" is any of the hosts
        self.folder, self.versions = None, itertools.count(1)

    def lower(self, root):
        (root / self.name).mkdir(parents=True)

    def start(self):
        self.folder = self.workspace.root / self.name

    def choose_length(self):
        if self.room == SMALL:
            return self.random.choice([1, 13, 500, 4000, 4096, 4097, 8000, SMALL, self.random.randint(0, SMALL)])
        return self.random.choice([5000, SMALL + 1, 20_000, 70_000, LARGE])

    def new_content(self, name, length=None):
        return Content(name, next(self.versions), self.choose_length() if length is None else length, self.room)

    def add(self, path, view, host="", accept=""):
        self.views.append((f"/{self.name}/{path}", view, host, accept))
        return view

    def add_file(self, name):
        """A slot with a file; the path in the folder is the name."""
        slot = self.add(name, Slot(f"{self.name}/{name}"))
        content = self.new_content(slot.name)
        path = self.folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        with changing({slot: content}):
            write_file(path, content)
        return slot

    def next_pause(self):
        return self.random.uniform(*self.pause)

    def make_ask(self, random, known):
        """A request for one of the paths; `known` gives the validators of earlier answers."""
        path, view, host, accept = random.choice(self.views)
        host = host or random.choice(["off", "inside", "on"])
        ask = Ask(view, path, host, accept=accept, reported=self.reported)
        kind = random.random()
        if kind < 0.1:
            ask = ask._replace(method="HEAD")
        if kind < 0.3:
            first = random.choice([0, 0, 1, 100, 5000, 90_000])
            ask = ask._replace(range=(first, first + random.choice([0, 10, 4000, 200_000])))
        tag, since = known.get(ask.key, (None, None))
        if tag and random.random() < 0.3:
            ask = ask._replace(known=tag) if random.random() < 0.5 else ask._replace(since=since)
        return ask


class Replaced(Writer):
    """Replaced by rename, with older times, removed and made again."""

    def start(self):
        super().start()
        self.slots = [self.add_file(f"f{n}.txt") for n in range(3)]
        self.slots.append(self.add("never.txt", Slot(f"{self.name}/never.txt")))

    def change(self):
        slot = self.random.choice(self.slots)
        path = self.workspace.root / slot.name
        if slot.now is not MISSING and self.random.random() < 0.3:
            with changing({slot: MISSING}):
                path.unlink()
            return
        same = self.random.random() < 0.3 and slot.now is not MISSING
        content = self.new_content(slot.name, slot.now.length if same else None)
        new = self.workspace.write_apart(content, self.random.choice([None, None, 5, 1_000_000]))
        if same:  # the same length and time: only the inode, and the time of its change, tell
            os.utime(new, ns=(slot.now.mtime, slot.now.mtime))
            learn_time(new, content)
        with changing({slot: content}):
            os.rename(new, path)


class InPlace(Writer):
    """Written, truncated and grown. The first version lies in the lower layer of an overlay."""

    names = ["a.txt", "b.txt"]

    def lower(self, root):
        super().lower(root)
        self.contents = [self.new_content(f"{self.name}/{name}") for name in self.names]
        for name, content in zip(self.names, self.contents):
            write_file(root / self.name / name, content)

    def start(self):
        super().start()
        self.slots = []
        for name, content in zip(self.names, self.contents):
            learn_time(self.folder / name, content)
            slot = self.add(name, Slot(f"{self.name}/{name}"))
            with changing({slot: content}):
                self.slots.append(slot)

    def change(self):
        slot = self.random.choice(self.slots)
        old, path = slot.now, self.workspace.root / slot.name
        self.random.choice([self.write, self.write, self.write_anew, self.cut, self.grow])(slot, old, path)

    def write(self, slot, old, path):
        """As long as before, by one call."""
        content = self.new_content(slot.name, old.length)
        with changing({slot: content}, [slot]), open(path, "r+b", buffering=0) as file:
            file.write(content.body())
            learn_time(path, content)

    def write_anew(self, slot, old, path):
        """Truncated to nothing, then written."""
        content = self.new_content(slot.name)
        with changing({slot: content}, [slot], self.cut_short(old, 0)), open(path, "wb", buffering=0) as file:
            file.write(content.body())
            learn_time(path, content)

    def cut_short(self, old, length):
        """The kernel shows the new length of a file that is truncated before its new times: this looks like a version
        that has not been changed for long, and may be kept."""
        return Content(old.name, old.version, length, old.room, old.mtime)

    def resize(self, slot, old, path, length):
        content = Content(old.name, old.version, length, old.room)
        passing = self.cut_short(old, length) if length < old.length else None
        with changing({slot: content}, [slot], passing):
            if length < old.length:
                os.truncate(path, length)
            else:
                with open(path, "ab", buffering=0) as file:
                    file.write(content.body()[old.length :])
            learn_time(path, content)

    def cut(self, slot, old, path):
        self.resize(slot, old, path, self.random.randint(0, old.length))

    def grow(self, slot, old, path):
        self.resize(slot, old, path, self.random.randint(old.length, old.room))


class Folders(Writer):
    """Files in a folder that is moved away, back, exchanged with another, and closed."""

    def start(self):
        super().start()
        self.away = [self.workspace.root / ".new" / f"{self.name}-{n}" for n in range(2)]
        self.slots = [self.add(name, Slot(f"{self.name}/{name}")) for name in ("d/x.txt", "d/sub/y.txt")]
        self.folder_slot = self.add("d", Slot(f"{self.name}/d"))
        self.contents = []
        for folder in self.away:
            (folder / "sub").mkdir(parents=True)
            contents = [self.new_content(slot.name) for slot in self.slots]
            for name, content in zip(("x.txt", "sub/y.txt"), contents):
                write_file(folder / name, content)
            self.contents.append(contents)
        self.current, self.closed = None, False

    def record(self, outcomes, folder):
        return changing({**dict(zip(self.slots, outcomes)), self.folder_slot: folder})

    def change(self):
        path = self.folder / "d"
        if self.current is None:
            self.current, self.closed = self.random.randint(0, 1), False
            with self.record(self.contents[self.current], FOLDER):
                os.rename(self.away[self.current], path)
        elif self.random.random() < 0.3:
            self.closed = not self.closed
            outcomes = [DENIED, DENIED] if self.closed else self.contents[self.current]
            with self.record(outcomes, DENIED if self.closed else FOLDER):
                os.chmod(path, 0 if self.closed else 0o755)
        else:
            if self.closed:
                self.reopen()
            with self.record([MISSING, MISSING], MISSING):
                os.rename(path, self.away[self.current])
            self.current = None

    def reopen(self):
        with self.record(self.contents[self.current], FOLDER):
            os.chmod(self.folder / "d", 0o755)
        self.closed = False


class Modes(Writer):
    """Files that may not be read for a while."""

    def start(self):
        super().start()
        self.slots = [self.add_file("m.txt"), self.add_file("n.txt")]
        self.contents = [slot.now for slot in self.slots]

    def change(self):
        n = self.random.randrange(len(self.slots))
        denied = self.slots[n].now is not DENIED
        with changing({self.slots[n]: DENIED if denied else self.contents[n]}):
            os.chmod(self.workspace.root / self.slots[n].name, 0 if denied else 0o644)


class HardLinks(Writer):
    """One inode under two names, or each name its own; written in place under one of them."""

    reported = False

    def start(self):
        super().start()
        self.one, self.two = self.add_file("one.txt"), self.add_file("two.txt")
        self.linked = False

    def change(self):
        path = [self.workspace.root / slot.name for slot in (self.one, self.two)]
        if self.linked and self.random.random() < 0.6:
            length = self.one.now.length
            content = self.new_content(self.one.name, length)
            slots = [self.one, self.two]
            with changing(dict.fromkeys(slots, content), slots), open(path[1], "r+b", buffering=0) as file:
                file.write(content.body())
                learn_time(path[1], content)
            return
        if self.linked:
            content = self.new_content(self.two.name)
            new = self.workspace.write_apart(content)
        else:
            content = self.one.now
            new = self.workspace.name_apart()
            os.link(path[0], new)
        with changing({self.two: content}):
            os.rename(new, path[1])
        self.linked = not self.linked


class Kinds(Writer):
    """A file, a folder with an index, a FIFO, or nothing, under one name."""

    def start(self):
        super().start()
        self.plain, self.below = self.add("p", Slot(f"{self.name}/p")), self.add("p/", Slot(f"{self.name}/p/"))
        self.index = self.add("p/index.html", Slot(f"{self.name}/p/index.html"))
        (self.workspace.root / ".new").mkdir(exist_ok=True)

    def remove(self, path):
        old = self.workspace.name_apart()
        with changing({self.plain: MISSING, self.below: MISSING, self.index: MISSING}):
            if path.is_dir():
                os.rename(path, old)
                shutil.rmtree(old)
            else:
                path.unlink()

    def change(self):
        path = self.folder / "p"
        if path.exists():
            self.remove(path)
            return
        content = self.new_content(self.name)
        kind = self.random.choice(["file", "folder", "fifo"])
        if kind == "file":
            new = self.workspace.write_apart(content)
            outcomes = {self.plain: content}
        elif kind == "folder":
            new = self.workspace.name_apart()
            new.mkdir()
            write_file(new / "index.html", content)
            outcomes = {self.plain: FOLDER, self.below: content, self.index: content}
        else:
            new = self.workspace.name_apart()
            os.mkfifo(new)
            outcomes = {self.plain: MISSING}
        with changing(outcomes):
            os.rename(new, path)


class Links(Writer):
    """A link that is pointed at another file, out of the root, at nothing, or replaced by a file. Each policy has a
    host of its own."""

    reported = False

    def start(self):
        super().start()
        self.targets = {"t0.txt": self.add_file("t0.txt"), "t1.txt": self.add_file("t1.txt")}
        outside = self.workspace.root.parent / f"{self.name}-outside.txt"
        self.outside = self.new_content(f"{self.name} outside")
        write_file(outside, self.outside)
        self.policies = {policy: self.add("l.txt", Slot(f"{self.name}/l.txt {policy}"), policy) for policy in
                         ("off", "inside", "on")}  # fmt: skip
        (self.folder / "real0").mkdir()
        (self.folder / "real1").mkdir()
        self.in_folders = [self.new_content(f"{self.name} in folder") for _ in range(2)]
        for n, content in enumerate(self.in_folders):
            write_file(self.folder / f"real{n}" / "z.txt", content)
        self.in_linked = {policy: self.add("dir/z.txt", Slot(f"{self.name}/dir/z.txt {policy}"), policy) for policy in
                          ("off", "inside", "on")}  # fmt: skip

    def record(self, slots, off, inside, on):
        return changing({slots["off"]: off, slots["inside"]: inside, slots["on"]: on})

    def change(self):
        if self.random.random() < 0.4:
            n = self.random.randint(0, 1)
            new = self.workspace.link_apart(f"real{n}")
            with self.record(self.in_linked, MISSING, self.in_folders[n], self.in_folders[n]):
                os.rename(new, self.folder / "dir")
            return
        kind = self.random.choice(["t0.txt", "t1.txt", "outside", "dangling", "file"])
        if kind == "file":
            content = self.new_content(self.name)
            new, allowed = self.workspace.write_apart(content), (content,) * 3
        elif kind == "outside":
            new, allowed = self.workspace.link_apart(f"../../{self.name}-outside.txt"), (MISSING, MISSING, self.outside)
        elif kind == "dangling":
            new, allowed = self.workspace.link_apart("nowhere"), (MISSING,) * 3
        else:
            content = self.targets[kind].now
            new, allowed = self.workspace.link_apart(kind), (MISSING, content, content)
        with self.record(self.policies, *allowed):
            os.rename(new, self.folder / "l.txt")


def choose_variant(accept, base, br, gz):
    """What static sends for these three names."""
    if base.kind != "file":
        return base
    for coding, variant in (("br", br), ("gzip", gz)):
        if coding in accept and variant.kind == "file" and variant.seconds() >= base.seconds():
            return Coded(variant, coding)
    return base


class Variants(Writer):
    """A script with variants that appear, disappear and are older."""

    def start(self):
        super().start()
        self.base, self.br, self.gz = (self.add_file(name) for name in ("v.js", "v.js.br", "v.js.gz"))
        self.views = [(path, view, "variants", "") for path, view, *_ in self.views[1:]]
        for accept in ("", "gzip", "br", "gzip, br"):
            resolve = functools.partial(choose_variant, accept)
            view = Joined(f"{self.name}/v.js ({accept})", resolve, self.base, self.br, self.gz)
            self.add("v.js", view, "variants", accept)

    def change(self):
        slot = self.random.choice([self.base, self.br, self.gz])
        if slot is not self.base and slot.now is not MISSING and self.random.random() < 0.4:
            with changing({slot: MISSING}):
                (self.workspace.root / slot.name).unlink()
            return
        content = self.new_content(slot.name)
        new = self.workspace.write_apart(content, self.random.choice([None, None, 1, 3600]))
        with changing({slot: content}):
            os.rename(new, self.workspace.root / slot.name)


def choose_existing(*found):
    return next((outcome for outcome in found if outcome is not MISSING), MISSING)


class Fallbacks(Writer):
    """TryFiles $path $path.html /tried/last.html: which of them exists changes."""

    def start(self):
        super().start()
        self.slots = [self.add_file(name) for name in ("page", "page.html", "last.html")]
        view = Joined(f"{self.name}/page", choose_existing, *self.slots)
        self.views = [(f"/{self.name}/page", view, "try", "")]

    def change(self):
        slot = self.random.choice(self.slots)
        path = self.workspace.root / slot.name
        if slot is not self.slots[2] and slot.now is not MISSING and self.random.random() < 0.6:
            with changing({slot: MISSING}):
                path.unlink()
            return
        content = self.new_content(slot.name)
        new = self.workspace.write_apart(content)
        with changing({slot: content}):
            os.rename(new, path)


class Roots(Writer):
    """current -> releases/N, swapped by a rename; the files of each release change, too."""

    def lower(self, root):
        for n in range(2):
            (root / self.name / "releases" / str(n)).mkdir(parents=True)
        (root / self.name / "current").symlink_to("releases/0")

    def start(self):
        super().start()
        self.root, self.files, views = Slot(f"{self.name}/current", 0), [], []
        for name in ("r.txt", "s.txt"):
            files = [self.add_file(f"releases/{n}/{name}") for n in range(2)]
            self.files += files
            views.append((f"/{name}", Below(name, self.root, files), "roots", ""))
        content = self.new_content(f"{self.name} only")
        write_file(self.folder / "releases" / "1" / "only.txt", content)
        only = Below("only.txt", self.root, [Slot("0/only.txt"), Slot("1/only.txt", content)])
        self.views = [*views, ("/only.txt", only, "roots", "")]

    def change(self):
        if self.random.random() < 0.5:
            slot = self.random.choice(self.files)
            content = self.new_content(slot.name)
            new = self.workspace.write_apart(content)
            with changing({slot: content}):
                os.rename(new, self.workspace.root / slot.name)
            return
        number = 1 - self.root.now
        new = self.workspace.link_apart(f"releases/{number}")
        with changing({self.root: number}):
            os.rename(new, self.folder / "current")


HOT, WARM, ROOTS = (0.001, 0.02), (0.8, 3.0), (0.2, 3.0)

WRITERS = [  # (class, room, pause)
    (Replaced, SMALL, HOT),
    (Replaced, SMALL, WARM),
    (Replaced, LARGE, WARM),
    (InPlace, SMALL, HOT),
    (InPlace, SMALL, WARM),
    (InPlace, SMALL, WARM),
    (InPlace, LARGE, WARM),
    (Folders, SMALL, HOT),
    (Folders, SMALL, WARM),
    (Folders, LARGE, WARM),
    (Modes, SMALL, WARM),
    (Modes, LARGE, WARM),
    (HardLinks, SMALL, WARM),
    (HardLinks, LARGE, WARM),
    (Kinds, SMALL, WARM),
    (Kinds, SMALL, HOT),
    (Links, SMALL, WARM),
    (Links, SMALL, HOT),
    (Variants, SMALL, WARM),
    (Variants, LARGE, WARM),
    (Fallbacks, SMALL, WARM),
    (Roots, SMALL, ROOTS),
]


def make_writers(workspace, seed):
    return [
        cls(workspace, f"{cls.__name__.lower()}{number}", room, pause, random.Random(f"{seed}-{number}"))
        for number, (cls, room, pause) in enumerate(WRITERS)
    ]

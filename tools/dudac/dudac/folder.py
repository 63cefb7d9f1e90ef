# SPDX-License-Identifier: Apache-2.0
"""What a source folder is. Two layouts:

new         *.c, and perhaps service.toml; the service is named like the folder, without a number before it (01-hello)
original    Makefile.in with NAME, CC, CFLAGS, LDFLAGS, DEFS, INCDIR and OBJECTS; in sub-folders, too

In both, the folders html, conf, data and logs become DocumentRoot, ConfDir, DataDir and LogDir.
"""

import difflib
import os
import pathlib
import re
import tomllib
from dataclasses import dataclass, field
from typing import Optional

from . import DudacError, read_text
from .level import NEW_LEVEL, detect_level
from .makefile import Makefile

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)
FOLDERS_MAX = 10_000  # that are searched for a Makefile.in; and files of a service that are read
SETTINGS_BYTES_MAX = 1 << 20
SOURCE_BYTES_MAX = 1 << 28
LIBRARIES = (".a", ".so")
FOLDERS = {"html": "DocumentRoot", "conf": "ConfDir", "data": "DataDir", "logs": "LogDir"}
SETTINGS = {"name": str, "sources": list, "cflags": list, "ldflags": list, "root": bool}


@dataclass
class Unit:
    """A source file and its flags."""

    source: pathlib.Path
    folder: pathlib.Path  # in which it is compiled
    flags: list


@dataclass
class Service:
    name: str
    folder: pathlib.Path
    build: pathlib.Path  # what is made
    units: list
    level: Optional[int] = NEW_LEVEL  # see level.py
    ldflags: list = field(default_factory=list)
    compiler: Optional[str] = None  # that its Makefile.in names
    folders: dict = field(default_factory=dict)  # directive to path
    root: bool = False
    url: Optional[str] = None  # that it has given itself, by conf->service_name() or service_root()
    logged_name: str = ""  # in the server's log: `name`, until it has given itself another one
    sanitizers: tuple = ()

    def __post_init__(self):
        self.logged_name = self.logged_name or self.name

    @property
    def file(self) -> pathlib.Path:
        return self.build / f"{self.name}.duda"

    @property
    def path(self) -> str:
        """What its URLs begin with."""
        return self.url or ("/" if self.root else f"/{self.name}/")


def suggest_name(folder: pathlib.Path) -> str:
    """The name of a service without another one: that of its folder, without a number before it."""
    return re.sub(r"^\d+[-_.]", "", folder.name)


def check_name(name: str, origin) -> str:
    if not NAME.fullmatch(name):
        raise DudacError(f"{origin}: {name!r} cannot be the name of a service: a name has letters, digits, -, _ and ., "
                         "begins with a letter or digit, and has 64 characters at most")
    return name


def find_folders(*places: pathlib.Path) -> dict:
    """The folders of a service, each in the first place that has it."""
    return {directive: place / name for place in reversed(places) for name, directive in FOLDERS.items()
            if (place / name).is_dir()}


def open_folder(path: pathlib.Path) -> pathlib.Path:
    folder = pathlib.Path(os.path.abspath(path))
    if not folder.exists():
        raise DudacError(f"there is no folder {path}")
    if not folder.is_dir():
        raise DudacError(f"{path} is no folder; name the folder of the service's sources")
    check_path(folder)
    return folder


def check_path(path: pathlib.Path) -> None:
    if re.search(r"[\x00-\x1f\x7f]", str(path)):
        raise DudacError("the path of the folder has control characters, which a configuration cannot contain")


def find_build_folder(folder: pathlib.Path, build=None) -> pathlib.Path:
    """What dudac makes is in its own folder, whose changes do not count."""
    path = pathlib.Path(os.path.abspath(build)) if build else folder / "build"
    if path == folder or path in folder.parents:
        raise DudacError(f"{path} cannot be the build folder, because the sources are in it")
    check_path(path)
    return path


def read_folder(path, build=None, sanitizers: tuple = ()) -> list:
    """Returns the services of a source folder; the first is that of the folder itself. The build folder is `build`, or
    "build" in the folder; what is built with sanitizers is in a folder below it."""
    folder = open_folder(pathlib.Path(path))
    top = find_build_folder(folder, build)
    build = top / "-".join(sanitizers)
    makefiles = [] if is_new(folder) else find_makefiles(folder, top)
    services = read_makefiles(folder, build, makefiles) if makefiles else [read_new(folder, build)]
    for service in services:
        missing = [unit for unit in service.units if not unit.source.is_file()]
        if missing:
            raise DudacError(f"{missing[0].source} does not exist, which the service {service.name} is made of")
        service.level = detect_level(read_texts(service))
        service.sanitizers = sanitizers
    return services


def read_texts(service: Service) -> list:
    """The texts of the sources, of the headers next to them, and of what they include from the folders of -I."""
    sources = [unit.source for unit in service.units]
    headers = [path for folder in {source.parent for source in sources} for path in sorted(folder.glob("*.h"))]
    texts = {path: read_text(path, SOURCE_BYTES_MAX, "replace") for path in [*sources, *headers] if path.is_file()}
    folders = list(dict.fromkeys(folder for unit in service.units for folder in list_include_folders(unit)))
    waiting = list(texts.values()) if folders else []
    while waiting and len(texts) < FOLDERS_MAX:
        for path in (folder / name for name in INCLUDED.findall(waiting.pop()) for folder in folders):
            if path.is_file() and path not in texts:
                texts[path] = read_text(path, SOURCE_BYTES_MAX, "replace")
                waiting.append(texts[path])
    return list(texts.values())


def list_include_folders(unit: Unit) -> list:
    words = " ".join(unit.flags).replace("-I ", "-I").split()
    return [pathlib.Path(os.path.normpath(unit.folder / word[2:])) for word in words if word.startswith("-I")]


# ── the new layout ──


def is_new(folder: pathlib.Path) -> bool:
    """Sources next to a sub-folder with a Makefile.in: that is a library's, not one of the original layout."""
    if (folder / "service.toml").exists():
        return True
    return not (folder / "Makefile.in").exists() and any(path.is_file() for path in folder.glob("*.c"))


def read_settings(folder: pathlib.Path) -> dict:
    path = folder / "service.toml"
    if not path.exists():
        return {}
    settings = read_toml(path)
    for key, value in settings.items():
        if key not in SETTINGS:
            near = difflib.get_close_matches(key, SETTINGS, 1)
            instead = f'did you mean "{near[0]}"?' if near else f"it can have {', '.join(SETTINGS)}"
            raise DudacError(f'{path}: there is no "{key}"; {instead}')
        texts = value if isinstance(value, list) else [value] if SETTINGS[key] is str else []
        if not isinstance(value, SETTINGS[key]) or not all(isinstance(text, str) for text in texts):
            raise DudacError(f"{path}: {key} must be {describe_type(SETTINGS[key])}")
    return settings


def read_toml(path: pathlib.Path) -> dict:
    try:
        return tomllib.loads(read_text(path, SETTINGS_BYTES_MAX))
    except ValueError as error:
        raise DudacError(describe_mistake(path, error)) from None
    except RecursionError:
        raise DudacError(f"{path}: the values are nested too deeply") from None


def describe_mistake(path: pathlib.Path, error: ValueError) -> str:
    """FILE:LINE:COLUMN and the sentence of tomllib; it says that a value is invalid where quotes are missing."""
    match = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
    if not match:
        return f"{path}: {error}"
    hint = '; a text must be in quotes: "text"' if match[1] == "Invalid value" else ""
    return f"{path}:{match[2]}:{match[3]}: {match[1]}{hint}"


def describe_type(kind: type) -> str:
    return {str: "a text", list: "a list of texts", bool: "true or false"}[kind]


def find_sources(folder: pathlib.Path, patterns: list) -> list:
    found = []
    for pattern in patterns:
        try:
            paths = sorted(path for path in folder.glob(pattern) if path.is_file())
        except (ValueError, NotImplementedError, IndexError):  # empty, or an absolute path
            paths = []
        if not paths:
            raise DudacError(f"{folder} has no sources: no file matches {pattern}")
        found += [path for path in paths if path not in found]
    return found


def read_new(folder: pathlib.Path, build: pathlib.Path) -> Service:
    settings = read_settings(folder)
    name = settings.get("name") or suggest_name(folder)
    sources = find_sources(folder, settings.get("sources", ["*.c"]))
    flags = settings.get("cflags", [])
    return Service(
        name=check_name(name, folder),
        folder=folder,
        build=build,
        units=[Unit(source, folder, flags) for source in sources],
        ldflags=settings.get("ldflags", []),
        folders=find_folders(folder),
        root=settings.get("root", False),
    )


# ── the original layout ──


def find_makefiles(folder: pathlib.Path, build: pathlib.Path) -> list:
    """The Makefile.in of the folder and of its sub-folders, from above."""
    found = []
    for number, (place, names, files) in enumerate(os.walk(folder)):
        if number == FOLDERS_MAX:
            raise DudacError(f"{folder} has more than {FOLDERS_MAX} folders; name the folder of the service's sources")
        here = pathlib.Path(place)
        names[:] = sorted(name for name in names if not name.startswith(".") and here / name != build)
        if "Makefile.in" in files:
            found.append(here / "Makefile.in")
    return found


def read_makefiles(folder: pathlib.Path, build: pathlib.Path, paths: list) -> list:
    """A sub-folder without a NAME is part of the service of the nearest folder above; several may have one NAME."""
    services, owners = {}, {}  # owners: folder to name
    for path in paths:
        makefile = Makefile(path)
        base = os.path.basename(find_target(makefile).rstrip("/"))
        above = [owners[each] for each in path.parents if each in owners]
        name = base.removesuffix(".duda") or next(iter(above), path.parent.name if services else folder.name)
        owners[path.parent] = name
        units = list_units(makefile)
        if name in services:
            known = {unit.source for unit in services[name].units}
            services[name].units += [unit for unit in units if unit.source not in known]
            services[name].ldflags += list_link_flags(makefile)
        else:
            services[name] = make_service(name, folder, build, makefile, units)
    return list(services.values())


def find_target(makefile: Makefile) -> str:
    """NAME; files of 2012 have none, but a rule for NAME.duda."""
    name = makefile.get("NAME")
    made = [] if name else [target for target in makefile.targets() if target.endswith(".duda") and target != ".duda"]
    return name or next(iter(made), "")


def make_service(name: str, folder: pathlib.Path, build: pathlib.Path, makefile: Makefile, units: list) -> Service:
    here = makefile.path.parent
    target = find_target(makefile)
    places = [here, folder, (here / target).parent] if "/" in target else [here, folder]
    return Service(
        name=check_name(name, makefile.path),
        folder=here,
        build=build,
        units=units,
        ldflags=list_link_flags(makefile),
        compiler=makefile.get("CC"),
        folders=find_folders(*(pathlib.Path(os.path.normpath(place)) for place in places)),
    )


def list_include_flags(makefile: Makefile) -> list:
    """INCDIR has options; the recipes of 2012 say -I$(INCDIR), so that it begins with a folder."""
    words, flags = iter(makefile.words("INCDIR")), []
    for word in words:
        flags.append(word if word.startswith("-") else f"-I{word}")
        if word in ("-I", "-D", "-include", "-isystem", "-iquote"):
            flags += [next(words, "")]
    return flags


def list_objects(makefile: Makefile) -> list:
    """Objects and libraries: OBJECTS, or those of the rule for NAME.duda, as in files of 2012 with another variable."""
    made = [word for word in makefile.list_sources(".duda") if word.endswith((".o", *LIBRARIES))]
    return list(dict.fromkeys(makefile.words("OBJECTS") or made))


def list_link_flags(makefile: Makefile) -> list:
    libraries = [str(makefile.path.parent / name) for name in list_objects(makefile) if name.endswith(LIBRARIES)]
    return [*libraries, *makefile.words("LDFLAGS")]


def list_units(makefile: Makefile) -> list:
    folder = makefile.path.parent
    flags = [*makefile.words("CFLAGS"), *makefile.words("DEFS"), *list_include_flags(makefile)]
    objects = [name for name in list_objects(makefile) if not name.endswith(LIBRARIES)]
    sources = [folder / re.sub(r"\.o$", ".c", each) for each in objects] or sorted(folder.glob("*.c"))
    if not sources:
        raise DudacError(f"{makefile.path} has no OBJECTS, and {folder} no sources")
    return [Unit(pathlib.Path(os.path.normpath(source)), folder, flags) for source in sources]

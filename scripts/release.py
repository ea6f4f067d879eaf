"""Build the packages of a release twice, compare and check them, and list what an installation contains.

    nox -s release                 build and check; the files are in dist
    nox -s release -- v0.2.0       the same before publishing, with checks of the tag

Both builds start from copies of the sources in different folders, with different times and permissions. `dist`
then holds the wheel, the source archive, a software bill of materials in CycloneDX's format (of an empty
environment with the wheel and what it requires), and the SHA-256 of these files.
"""

import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

from readme_renderer import markdown

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
#: Stands for the owner of the repository until there is an address.
OWNER = "OWNER"
#: Files of the repository that are not in the source archive, and files that only the archive has.
LEFT_OUT, ADDED = re.compile(r"^\.ci/"), {"PKG-INFO"}
#: Bytes of the largest source archive and wheel; more are probably left over from something.
MOST = {".gz": 5_000_000, ".whl": 2_000_000}


def main(tag: str | None) -> None:
    """Write `dist`, or exit with a sentence about what is wrong."""
    files = tracked()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        first, second = (build(files, Path(folder) / name, *how) for name, how in BUILDS.items())
        names = sorted(path.name for path in first.iterdir())
        require(names == sorted(path.name for path in second.iterdir()), "two builds give files of other names")
        for name in names:
            require(filecmp.cmp(first / name, second / name, shallow=False), f"{name} differs between two builds")
            shutil.copy(first / name, DIST)
        [wheel], [archive] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
        run("twine", "check", "--strict", str(wheel), str(archive))
        check_contents(files, wheel, archive)
        version = check_metadata(wheel, files)
        bill = DIST / f"fairramp-{version}.cdx.json"
        write_bill(wheel, Path(folder) / "environment", bill)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in (archive, wheel, bill)]
    (DIST / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="ascii", newline="\n")
    print(*lines, sep="\n")
    to_do = before_publishing(version, tag)
    if tag is not None:
        require(not to_do, "; ".join(to_do))
    elif to_do:
        print("Before you publish:", *to_do, sep="\n- ")


def tracked() -> list[str]:
    """Return the files of the repository, or all files of an unpacked source archive."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        return sorted(name for name in listed.decode().split("\0") if name and (ROOT / name).exists())
    return sorted(
        p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if p.is_file() and "dist" not in p.parts
    )


#: The time of the files, their permissions, and the umask, time zone and language of a build.
BUILDS = {
    "one": (1_000_000_000, 0o644, 0o022, "UTC", "C"),
    "another place": (1_700_000_000, 0o600, 0o077, "Asia/Tokyo", "C.UTF-8"),
}


def build(files: list[str], place: Path, time: int, mode: int, mask: int, zone: str, language: str) -> Path:
    """Copy the sources and build them; return the folder with the packages."""
    for name in files:
        target = place / "fairramp" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
        target.chmod(mode)
        os.utime(target, (time, time))
    variables = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    before = os.umask(mask)
    try:
        # Without isolation: the environment of the session has the build's requirements, once for both builds.
        run(
            *("build", "--no-isolation", "--outdir", str(place / "out"), str(place / "fairramp")),
            env=variables | {"TZ": zone, "LC_ALL": language},
        )
    finally:
        os.umask(before)
    return place / "out"


def run(module: str, *arguments: str, env: dict[str, str] | None = None) -> None:
    """Run a module; show its output only if it fails."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], env=env, capture_output=True, text=True)
    require(done.returncode == 0, f"{module} failed:\n{done.stdout}{done.stderr}")


def check_contents(files: list[str], wheel: Path, archive: Path) -> None:
    """Check that both packages are complete and have nothing else."""
    with tarfile.open(archive) as content:
        inside = {name.partition("/")[2] for name in content.getnames()}
    expected = {name for name in files if not LEFT_OUT.match(name)}
    require(inside - ADDED == expected, f"the source archive differs: {sorted((inside - ADDED) ^ expected)}")
    with zipfile.ZipFile(wheel) as content:
        inside = {name for name in content.namelist() if ".dist-info/" not in name}
    expected = {name.removeprefix("src/") for name in files if name.startswith("src/")}
    require(inside == expected, f"the wheel differs: {sorted(inside ^ expected)}")
    for path in (wheel, archive):
        require(path.stat().st_size <= MOST[path.suffix], f"{path.name} has {path.stat().st_size:,} bytes")


def check_metadata(wheel: Path, files: list[str]) -> str:
    """Check what PyPI shows, and return the version."""
    with zipfile.ZipFile(wheel) as content:
        [name] = [name for name in content.namelist() if name.endswith(".dist-info/METADATA")]
        told = message_from_bytes(content.read(name))
    version, page = told["Version"], told.get_payload(decode=True).decode()
    shown = markdown.render(page)
    require(shown is not None, "PyPI cannot show the README")
    links = re.findall(r'(?:href|src)="([^"#]+)', shown)
    require(links and all(link.startswith("https://") for link in links), f"a link works only here: {links}")
    places = [re.fullmatch(rf"https://.*/fairramp/(?:blob/)?v{re.escape(version)}/(.*)", link) for link in links]
    absent = [p[1] for p in places if p and not any(f == p[1] or f.startswith(f"{p[1]}/") for f in files)]
    require(any(places) and not absent, f"the README links to files that do not exist: {absent}")
    return version


def write_bill(wheel: Path, place: Path, bill: Path) -> None:
    """Install the wheel into an empty environment and list what it contains."""
    run("venv", "--without-pip", str(place))
    python = str(place / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    run("pip", "--python", python, "install", "--quiet", "--no-compile", str(wheel))
    project = ("--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library")
    run("cyclonedx_py", "environment", *project, "--output-reproducible", "--output-file", str(bill), python)
    content = json.loads(bill.read_text(encoding="utf-8"))
    # The wheel's place on this machine tells nobody anything.
    content["metadata"]["component"]["version"] = wheel.name.split("-")[1]
    content["components"] = [part for part in content["components"] if part["name"] != "fairramp"]
    bill.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8", newline="\n")
    names = {part["name"] for part in content["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}
    require(required <= names, f"the bill of materials lacks {sorted(required - names)}")


def before_publishing(version: str, tag: str | None) -> list[str]:
    """List what still keeps this version from being published."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    reasons = {
        f"replace {OWNER} by the owner of the repository": f"/{OWNER}/" in project,
        f"give {version} a date in CHANGELOG.md": not re.search(
            rf"^## {version} - \d{{4}}-", changes, re.MULTILINE
        ),
        f"tag the commit v{version}, not {tag}": tag not in (None, f"v{version}"),
    }
    return [reason for reason, holds in reasons.items() if holds]


def require(holds: object, otherwise: str) -> None:
    """End with a sentence if something does not hold."""
    if not holds:
        sys.exit(f"Not ready for a release: {otherwise}.")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)

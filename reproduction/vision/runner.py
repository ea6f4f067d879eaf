"""Run a plan: compute missing features, then train heads and networks in parallel processes.

Unavailable datasets and networks are skipped with the reason. Results are appended in the order of the plan, so
the same plan always gives the same store.
"""

import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import fairramp
from fairramp.errors import FairrampWarning
from reproduction import error_rates, methods
from reproduction.protocol import Floats, Scored, Split, Task
from reproduction.store import Result, fingerprint
from reproduction.vision import backbones, network
from reproduction.vision.backbones import NOTHING, Body, UnavailableError
from reproduction.vision.data import SPLITS, Images, fraction_of
from reproduction.vision.features import PAPER_SIZES, Cache, Sizes, read_features, read_pixels
from reproduction.vision.head import PAPER_SCHEDULE, Schedule, train_head
from reproduction.vision.network import PAPER_TRAINING, Training
from reproduction.vision.plan import HEAD, TABLE_TASK, WHOLE, Run
from reproduction.vision.store import Store, numbers

#: The paper's methods, and fairramp's own targets.
METHODS = ("original", "rto", "rto_optimal", "rto_accuracy", "hardt_labels", "hardt_scores", "shift", "roc")
#: Further methods for heads on networks of `packages`: the paper's algorithm, other libraries, error rates.
PEERS = ("rto_sgd", "error_parity", "holisticai", *error_rates.METHODS)
#: Methods that fail if a group has no positive label, which is recorded as a result.
NEED_BOTH_LABELS = ("hardt_labels", "hardt_scores", "shift", *error_rates.METHODS)
#: Stored fields of a method's result; times are not stored.
KEPT = ("gap", "accuracy", "rates", "ramp_width", "target_rate", "thresholds", "test_bias", "failed")
KEPT_OF_PEERS = ("gap", "accuracy", "rate_gap", "tpr_gap", "fpr_gap", "failed")
#: Figure 2 (right): γ = 0.1 in signed scores, and the number of histogram bars.
FIGURE_RAMP_WIDTH = 0.05
BARS = 40
#: Scores within this distance of 0 or 1 count as concentrated there: |f| ≥ 0.9.
NEAR = 0.05


#: The small network is trained like the others, on smaller images.
SMALL_TRAINING = Training(pixels=64)
#: MobileNet on the 6,000 images: smaller images and few epochs.
REDUCED_TRAINING = Training(pixels=96, most_epochs=5)


@dataclass(frozen=True)
class Settings:
    """What results depend on besides the run; part of the fingerprint of stored results.

    Attributes
    ----------
    views : int
        Random crops per training image, in addition to the uncropped image.
    sizes, schedule : Sizes, Schedule
        Sizes of images, and training schedule of heads.
    training, small, reduced : Training
        How whole networks are trained, how the small one is, and how others are on the 6,000 images.
    version : int
        Increased when a change of the code changes results.
    """

    views: int = 1
    sizes: Sizes = PAPER_SIZES
    schedule: Schedule = PAPER_SCHEDULE
    training: Training = PAPER_TRAINING
    small: Training = SMALL_TRAINING
    reduced: Training = REDUCED_TRAINING
    version: int = 1

    def training_of(self, run: Run) -> Training:
        """Return how a whole network is trained."""
        if run.network.library == "small":
            return self.small
        return self.reduced if run.data == "celeba6000" else self.training

    def key(self, run: Run) -> str:
        """Return the fingerprint of a run under these settings."""
        used: Any = (
            asdict(self.training_of(run))
            if run.protocol == WHOLE
            else [self.views, asdict(self.sizes), asdict(self.schedule)]
        )
        return fingerprint(run.as_dict(), used, methods_of(run), methods.GRID, self.version)


FULL = Settings()


def methods_of(run: Run) -> tuple[str, ...]:
    """Return the names of the methods of a run."""
    return (*METHODS, *PEERS) if run.network.package and run.protocol == HEAD else METHODS


@dataclass(frozen=True, eq=False)
class Job:
    """What a process needs for one run: paths of features or pixels instead of pictures."""

    run: Run
    images: Images
    settings: Settings
    paths: tuple[Path, ...]
    hashes: dict[str, str]
    weights: Path | None = None
    download: bool = False


# One run -------------------------------------------------------------------------------------------------


def work(job: Job) -> Result:
    """Train, score, debias and measure one run."""
    rows, scores, details = (_head if job.run.protocol == HEAD else _whole)(job)
    label, sex = job.images.labels[job.run.task].astype(np.int64), job.images.sex
    splits = {name: Split(scores[name], sex[rows[name]], label[rows[name]]) for name in SPLITS}
    task = Task(job.run.data, job.run.backbone, job.run.seed)
    scored = Scored(
        task, **splits, train_sex=sex[rows["train"]], train_label=label[rows["train"]], train_seconds=0.0
    )
    found: Result = {
        **job.hashes,
        **details,
        "facts": job.images.facts,
        "rows": {name: _counts(sex[part]) for name, part in rows.items()},
        "near_the_ends": float(np.mean(np.minimum(scores["test"], 1 - scores["test"]) <= NEAR)),
        "methods": {name: _measured(name, scored) for name in methods_of(job.run)},
    }
    if job.run.protocol == WHOLE and job.run.task == TABLE_TASK and job.run.fraction == 1.0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairrampWarning)  # about small groups, as for all methods
            found["densities"] = densities(scored)
    return dict(numbers(found))


ALL_METHODS = methods.METHODS | error_rates.METHODS


def _measured(name: str, scored: Scored) -> Result:
    try:
        found = methods.run_method(ALL_METHODS[name], scored)
        kept = KEPT_OF_PEERS if name in PEERS else KEPT
        return {field: found[field] for field in kept if field in found}
    except ValueError as error:
        if name not in NEED_BOTH_LABELS:
            raise
        return {"failed": str(error)}


def _counts(sex: Any) -> dict[str, int]:
    return {str(name): int(count) for name, count in zip(*np.unique(sex, return_counts=True), strict=True)}


def _head(job: Job) -> tuple[dict[str, Any], dict[str, Floats], Result]:
    measured, readable = read_features(job.paths[0])
    rows = job.images.split(job.run.task, job.run.seed, readable)
    rows["train"] = fraction_of(rows["train"], job.run.fraction)
    views = [read_features(path)[0][rows["train"]] for path in job.paths]
    label = job.images.labels[job.run.task][rows["train"]]
    trained = train_head(views, label, job.run.seed, job.settings.schedule)
    return rows, {name: trained.scores(measured[rows[name]]) for name in SPLITS}, {}


def _whole(job: Job) -> tuple[dict[str, Any], dict[str, Floats], Result]:
    import torch

    torch.set_num_threads(1)
    body = backbones.load(job.run.network, job.weights, job.download, job.run.seed)
    images, readable = read_pixels(job.paths[0])
    rows = job.images.split(job.run.task, job.run.seed, readable)
    rows["train"] = fraction_of(rows["train"], job.run.fraction)
    label = job.images.labels[job.run.task]
    trained = network.train_network(body, images, label, rows, job.run.seed, job.settings.training_of(job.run))
    return rows, trained.scores, {"epochs": trained.epochs, "best_epoch": trained.best_epoch}


def densities(scored: Scored) -> Result:
    """Return the data of Figure 2 (right): histograms of scores by sex, and the rules of RTO and Hardt et al."""
    fit, test = scored.fit, scored.test
    edges = np.linspace(0, 1, BARS + 1)
    rate = float(fit.label.mean())
    rule = fairramp.fit_rule(fit.scores, fit.sex, ramp="paper", ramp_width=FIGURE_RAMP_WIDTH, target_rate=rate)
    sexes = [str(name) for name in rule.groups]
    probes = np.array([0.0, 1.0])
    hardt = {
        sex: methods.hardt_labels(
            replace(scored, test=Split(probes, np.array([sex, sex]), np.array([0, 1])))
        ).probabilities
        for sex in sexes
    }
    return {
        "bars": {sex: np.histogram(test.scores[test.sex == sex], edges)[0].tolist() for sex in sexes},
        "thresholds": dict(zip(sexes, rule.thresholds, strict=True)),
        "ramp_width": FIGURE_RAMP_WIDTH,
        "target_rate": rate,
        "hardt": {sex: probabilities.tolist() for sex, probabilities in hardt.items()},
    }


# All runs ------------------------------------------------------------------------------------------------


class Workshop:
    """Datasets and networks, loaded when first needed, and the reasons for which some are unavailable.

    Parameters
    ----------
    sources : dict of callables
        A reader for each given dataset.
    cache : Path
        Folder for features and pixels.
    settings : Settings
        Settings of the runs.
    weights, download : Path, bool
        As for `backbones.load`.
    """

    def __init__(
        self,
        sources: dict[str, Callable[[], Images]],
        cache: Path,
        settings: Settings,
        weights: Path | None = None,
        download: bool = False,
    ) -> None:
        self.sources = sources
        self.cache = cache
        self.settings = settings
        self.weights = weights
        self.download = download
        self.skipped: dict[str, str] = {}
        self.unread: dict[str, list[str]] = {}
        self._images: dict[str, tuple[Images, Images, str]] = {}
        self._paths: dict[tuple[str, str, str], tuple[tuple[Path, ...], dict[str, str]]] = {}

    def job(self, run: Run) -> Job | None:
        """Return the job of a run, or None if the run is skipped."""
        if run.data in self.skipped or run.backbone in self.skipped:
            return None
        if run.data not in self.sources:
            self._skip(run.data, "no folder was given")
            return None
        try:
            paths, hashes = self._prepared(run)
        except UnavailableError as reason:
            self._skip(run.backbone, str(reason))
            return None
        rows = self._images[run.data][1]
        return Job(run, rows, self.settings, paths, hashes, self.weights, self.download)

    def _skip(self, name: str, reason: str) -> None:
        self.skipped[name] = reason
        print(f"skipped: {name}: {reason}", flush=True)

    def _prepared(self, run: Run) -> tuple[tuple[Path, ...], dict[str, str]]:
        place = run.protocol, run.backbone, run.data
        if place not in self._paths:
            images, _, content = self._data(run.data)
            if run.protocol == HEAD:
                self._paths[place] = self._features(run, images, content)
            else:
                self._paths[place] = self._pixels(run, images, content)
        return self._paths[place]

    def _data(self, name: str) -> tuple[Images, Images, str]:
        if name not in self._images:
            images = self.sources[name]()
            print(f"{name}: {len(images):,} images, {images.facts.get('missing', 0)} missing", flush=True)
            self._images[name] = images, replace(images, pictures=()), images.fingerprint()
        return self._images[name]

    def _features(self, run: Run, images: Images, content: str) -> tuple[tuple[Path, ...], dict[str, str]]:
        body = self._body(run)
        weights = body.fingerprint()
        body = backbones.frozen(body)
        cache = Cache(self.cache, self.settings.sizes)
        views = range(self.settings.views + 1)
        paths = tuple(
            cache.features(images, content, body, weights, view, _progress(f"{run.backbone} view {view}"))
            for view in views
        )
        self._note_unread(run.data, images, read_features(paths[0])[1])
        return paths, {"images": content, "weights": weights}

    def _pixels(self, run: Run, images: Images, content: str) -> tuple[tuple[Path, ...], dict[str, str]]:
        self._body(run)  # skip unavailable networks before decoding images
        side = self.settings.training_of(run).pixels
        path = Cache(self.cache, Sizes(side, side)).pixels(
            images, content, _progress(f"{run.data} {side} pixels")
        )
        self._note_unread(run.data, images, read_pixels(path)[1])
        return (path,), {"images": content}

    def _body(self, run: Run) -> Body:
        seed = 0 if run.network.pretraining == NOTHING and run.protocol == HEAD else run.seed
        return backbones.load(run.network, self.weights, self.download, seed)

    def _note_unread(self, data: str, images: Images, readable: Any) -> None:
        names = [images.pictures[row].name for row in np.flatnonzero(~readable)]
        if names and data not in self.unread:
            listed = self.cache / f"unreadable-{data}.txt"
            listed.write_text("\n".join(names) + "\n", encoding="utf-8")
            shown = ", ".join(names[:10]) + (f", …; see `{listed}`" if len(names) > 10 else "")
            print(f"{data}: {len(names)} images cannot be read and are excluded: {shown}", flush=True)
        self.unread[data] = names


def run_all(runs: Sequence[Run], workshop: Workshop, store: Store, jobs: int) -> int:
    """Compute the missing runs that are possible; return how many were added."""
    if store.repair():
        print(f"`{store.path}`: the incomplete last line was removed and is computed again", flush=True)
    finished = store.keys()
    todo = [run for run in runs if workshop.settings.key(run) not in finished]
    print(f"{len(runs) - len(todo):,} of {len(runs):,} runs done", flush=True)
    start, added = time.perf_counter(), 0
    for run, result in _results(todo, workshop, jobs):
        store.append(workshop.settings.key(run), run, result)
        added += 1
        left = (time.perf_counter() - start) / added * (len(todo) - added) / 60
        print(f"{added:>5}/{len(todo)}  {run}  about {left:.1f} min left", flush=True)
    lost = len(todo) - added
    if lost:
        print(f"{lost:,} runs were skipped: {', '.join(workshop.skipped)}", flush=True)
    return added


def _results(runs: Sequence[Run], workshop: Workshop, jobs: int) -> Iterator[tuple[Run, Result]]:
    """Yield results in the order of runs; some are computed ahead."""
    context = get_context("spawn")  # a forked process would inherit locks of library threads
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_exit_silently_on_interrupt) as pool:
        ahead: list[tuple[Run, Future[Result]]] = []
        try:
            for run in runs:
                job = workshop.job(run)
                if job is None:
                    continue
                ahead.append((run, pool.submit(work, job)))
                if len(ahead) > 4 * jobs:
                    first, future = ahead.pop(0)
                    yield first, future.result()
            for run, future in ahead:
                yield run, future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _exit_silently_on_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _progress(what: str) -> Callable[[int, int], None]:
    return partial(_say, what, time.perf_counter(), sys.stdout)


def _say(what: str, start: float, out: Any, done: int, total: int) -> None:
    speed = done / (time.perf_counter() - start)
    print(f"{what}: {done:,} of {total:,} images, {speed:.0f} per second", file=out, flush=True)
